"""Facts derived from a history: holds, grants, faults, clocks, order."""
