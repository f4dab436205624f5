"""Measure leftovers of many runs in a loop, and growth during one long run."""
