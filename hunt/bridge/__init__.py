"""Translates a simulated run into a scenario for real clients and servers."""
