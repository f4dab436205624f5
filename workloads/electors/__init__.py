"""Leader election: electors, and how one is tested like a lock."""
