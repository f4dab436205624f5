"""Verdicts on runs: at their end, in progress, and on stored ones."""
