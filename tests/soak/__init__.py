"""Runs in a loop, and what they leave behind; one long run, and what grows in it."""
