"""Starts, kills, pauses, wipes and reads servers on their nodes; one file for each kind."""
