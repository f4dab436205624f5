"""How each server is started, killed, paused, wiped and read, on the node that it runs on."""
