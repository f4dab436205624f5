"""Scripted schedules of ops and faults, each with a published, expected outcome."""
