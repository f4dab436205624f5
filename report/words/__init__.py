"""Verdicts, settings and findings in words."""
