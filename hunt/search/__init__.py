"""The search: draw schedules, run and judge them, shrink those that break a promise."""
