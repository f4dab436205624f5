"""Verdicts, settings and findings as sentences."""
