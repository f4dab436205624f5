"""Explains violations: the chain of causes."""
