"""What runs on a client's node: its program, in parts, and the pump that carries its lines."""

PROGRAM = "fencepost.workloads.client.program"
"""The module of a client, by which its process is told from others."""
