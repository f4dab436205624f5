"""Hunts as runs: specs of simulated locks, stored counterexamples, confirmation on real servers."""
