"""What clients do: locks, the resource that they protect, generators, scenarios."""
