"""What the checkers conclude from a history: holds, grants, faults, clocks, order."""
