"""Faults as decisions of a schedule, and what they do to simulated servers and clients."""
