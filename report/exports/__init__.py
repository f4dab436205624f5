"""Exports of runs for other tools: data frames, JUnit, badges."""
