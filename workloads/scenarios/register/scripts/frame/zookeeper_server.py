"""ZooKeeper as a local process."""

import os
import socket
import tempfile
from contextlib import contextmanager

from frame.processes import free_port, running

JARS = os.environ.get("JARS", "/usr/share/java")  # the folder of its jars
CONFIG = """tickTime={tick_ms}
minSessionTimeout=1000
maxSessionTimeout=120000
clientPort={port}
clientPortAddress=127.0.0.1
dataDir={folder}
admin.enableServer=false
4lw.commands.whitelist=srvr
"""


@contextmanager
def zookeeper_server(tick_ms=1000):
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        config = os.path.join(folder, "zoo.cfg")
        with open(config, "w") as file:
            file.write(CONFIG.format(port=port, folder=folder, tick_ms=tick_ms))
        with running(zookeeper(config), port, serves) as server:
            yield server


def zookeeper(config, memory="-Xmx128m"):
    main = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
    return ["java", memory, "-cp", f"{JARS}/zookeeper.jar:{JARS}/*", main, config]


def serves(port):
    """Return whether the server takes requests. While it starts, it may never answer."""
    with socket.create_connection(("127.0.0.1", port), timeout=1) as connection:
        connection.sendall(b"srvr")
        return b"Mode: " in connection.makefile("rb").read()
