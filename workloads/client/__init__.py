"""What runs on a client's node: its program, in parts, and the pump that carries its lines."""
