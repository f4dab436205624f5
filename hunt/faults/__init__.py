"""Faults as decisions of a schedule, and their effects on simulated servers and clients."""
