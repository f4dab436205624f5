"""The name of the file by which the program of an elector hands over to its successor."""

SUCCESSION = "FENCEPOST_SUCCESSION"
"""The environment variable that names the file in which a program leaves its state to its
successor, which empties it (docs/protocol.md, "Electors")."""
