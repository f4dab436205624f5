"""Hunts on the wire: real client processes, simulated servers on loopback, real time."""
