"""A counterexample in words."""
