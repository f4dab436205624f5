"""The client's program, in parts, and the pump that carries its output."""

PROGRAM = "fencepost.workloads.client.program"
"""The module of a client, which identifies its process."""
