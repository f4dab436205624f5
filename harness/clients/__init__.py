"""The harness' side of the clients: programs, events, and the recorder of the history."""
