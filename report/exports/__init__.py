"""Runs for other tools: data frames, JUnit, badges."""
