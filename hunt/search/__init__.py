"""The search: draw schedules, run and judge them, shrink what breaks a promise."""
