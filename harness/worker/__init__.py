"""One client, one process: the program that runs on a node, and the harness' handle on it."""
