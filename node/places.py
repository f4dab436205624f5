"""Paths and names on a node."""

HOME = "/opt/fencepost"
"""Installed files; they stay after a run."""
RUN = "/run/fencepost"
DATA = "/var/lib/fencepost"
LOGS = "/var/log/fencepost"

PROGRAM = "fencepost-node"
PROGRAM_PATH = f"{HOME}/{PROGRAM}"
PID_FILE = f"{RUN}/server.pid"
STARTING = f"{RUN}/server.starting"
"""The lock of a process that starts the server."""
ETC_HOSTS = "/etc/hosts"
NAME = f"{RUN}/name"
"""The node's name, on an external host that has another name."""
ADDRESS = f"{RUN}/address"
"""The address by which other nodes reach it, on an external host."""

MARK = "FENCEPOST_PROCESS"
"""The environment variable that marks fencepost's own programs on a node."""

CODE_FILE = f"{RUN}/fencepost.zip"
"""Fencepost's own code for clients and for the resource's server, shipped before each run: an entry
of PYTHONPATH."""
CODE = f"{RUN}/code"
"""What else a client's programs need: those in other languages, and other packages' code."""
PYTHON = f"{HOME}/client/bin/python"
LIBRARIES = f"{HOME}/libraries"
