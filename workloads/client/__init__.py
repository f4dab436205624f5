"""The program of a client, on its node, and the pump that carries what it writes to the harness."""
