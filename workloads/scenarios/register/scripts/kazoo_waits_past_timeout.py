"""kazoo, Lock: acquire(timeout=1) waits without a limit while there is no connection.

Run with kazoo 2.11.0, ZooKeeper 3.8.0, Python 3.11.
Needs: pip install kazoo==2.11.0; Debian's zookeeper (java, no service).
CONTROL=1 does not pause the server.
Exit 1 with an AssertionError where the defect shows, 0 where it does not.
"""

import os
import signal
import socket
import subprocess
import tempfile
import threading
import time

from kazoo.client import KazooClient

CONFIG = """tickTime=1000
maxSessionTimeout=120000
clientPort={port}
clientPortAddress=127.0.0.1
dataDir={folder}
admin.enableServer=false
4lw.commands.whitelist=ruok
"""


def connect(port):
    client = KazooClient(f"127.0.0.1:{port}", timeout=100)
    client.start(timeout=600)
    return client


def show(port, server):
    holder, second = connect(port), connect(port)
    holder.Lock("/job").acquire()
    ended = threading.Event()

    def acquire():
        try:
            second.Lock("/job").acquire(timeout=1)
        except Exception:
            pass  # LockTimeout, or that the connection is lost: the caller learns of it
        ended.set()

    if not os.environ.get("CONTROL"):
        server.send_signal(signal.SIGSTOP)
    begun = time.monotonic()
    threading.Thread(target=acquire, daemon=True).start()
    ended.wait(100 if os.environ.get("CONTROL") else 15)
    took = time.monotonic() - begun
    assert ended.is_set(), f"acquire(timeout=1) had not returned after {took:.0f} s"


def start(folder):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    config = os.path.join(folder, "zoo.cfg")
    with open(config, "w") as file:
        file.write(CONFIG.format(port=port, folder=folder))
    main = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
    command = ["java", "-Xmx128m", "-cp", "/usr/share/java/zookeeper.jar", main, config]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for _ in range(1200):
        try:
            with socket.create_connection(("127.0.0.1", port)) as connection:
                connection.sendall(b"ruok")
                if connection.recv(4) == b"imok":
                    return server, port
        except OSError:
            if server.poll() is not None:
                break
        time.sleep(0.05)
    server.kill()
    raise RuntimeError("ZooKeeper did not start")


def main():
    with tempfile.TemporaryDirectory() as folder:
        server, port = start(folder)
        try:
            show(port, server)
        finally:
            server.kill()
            server.wait()


if __name__ == "__main__":
    main()
