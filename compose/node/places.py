"""Where things lie on a node."""

HOME = "/opt/fencepost"
"""What is installed; it stays when a run is over."""
RUN = "/run/fencepost"
DATA = "/var/lib/fencepost"
LOGS = "/var/log/fencepost"

PROGRAM = "fencepost-node"
PROGRAM_PATH = f"{HOME}/{PROGRAM}"
PID_FILE = f"{RUN}/server.pid"
ETC_HOSTS = "/etc/hosts"
NAME = f"{RUN}/name"
"""The node's name, on a host of somebody else's that has another."""
ADDRESS = f"{RUN}/address"
"""The address by which other nodes reach it, on a host of somebody else's."""

MARK = "FENCEPOST_PROCESS"
"""The variable of the environment by which our own programs on a node are told from others."""

CODE = f"{RUN}/code"
"""What a client's programs need of fencepost, shipped before each run."""
PYTHON = f"{HOME}/client/bin/python"
LIBRARIES = f"{HOME}/libraries"
