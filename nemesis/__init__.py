"""Faults: one file a family, each with its receipt and its healing; schedules."""
