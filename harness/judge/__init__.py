"""Verdicts on runs: at their end, while they go on, and of stored ones."""
