"""The story of a counterexample, in words."""
