"""Long simulated histories, with the faults of the nemesis: for the catalogue of lock defects."""
