"""kazoo, Lock: acquire(blocking=False) leaves its contender behind, and the lock is stuck.

Run with kazoo 2.11.0, ZooKeeper 3.8.0, Python 3.11.
Needs: pip install kazoo==2.11.0; Debian's zookeeper (java, no service).
CONTROL=1 does not cut the connection.
Exit 1 with an AssertionError where the defect shows, 0 where it does not.
"""

import os
import socket
import struct
import subprocess
import tempfile
import threading
import time

from kazoo.client import KazooClient
from kazoo.exceptions import LockTimeout

DELETE = 2  # the type of a request, after its length and its number
CUT = not os.environ.get("CONTROL")
CONFIG = """tickTime=1000
maxSessionTimeout=120000
clientPort={port}
clientPortAddress=127.0.0.1
dataDir={folder}
admin.enableServer=false
4lw.commands.whitelist=ruok
"""


def cut_at_delete(port):
    """A proxy that loses the first delete and ends its connection; the next one passes."""
    listener, lost = socket.create_server(("127.0.0.1", 0)), threading.Event()

    def pump(source, sink, requests):
        try:
            while data := source.recv(65536):
                if requests and CUT and not lost.is_set() and is_delete(data):
                    lost.set()
                    break
                sink.sendall(data)
        except OSError:
            pass
        for end in (source, sink):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def serve():
        while True:
            client, _ = listener.accept()
            try:
                server = socket.create_connection(("127.0.0.1", port))
            except OSError:
                client.close()
                continue
            for job in ((client, server, True), (server, client, False)):
                threading.Thread(target=pump, args=job, daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()
    return listener.getsockname()[1]


def is_delete(data):
    return len(data) >= 12 and struct.unpack(">i", data[8:12])[0] == DELETE


def connect(port):
    client = KazooClient(f"127.0.0.1:{port}", timeout=100)
    client.start(timeout=600)
    return client


def show(port):
    holder, third = connect(port), connect(port)
    second = connect(cut_at_delete(port))
    lock, session = holder.Lock("/job"), second.client_id[0]
    lock.acquire()
    if second.Lock("/job").acquire(blocking=False):
        raise RuntimeError("two clients were granted the lock")
    second.retry(second.exists, "/job")  # waits until the second client is connected again
    if second.client_id[0] != session:
        raise RuntimeError("the session of the second client ended: the cut was too long")
    lock.release()
    try:
        free = third.Lock("/job").acquire(timeout=20 if CUT else 300)
    except LockTimeout:
        free = False
    left = third.get_children("/job")
    for client in (holder, second, third):
        client.stop()
        client.close()
    assert free, (
        f"no client holds the lock, and none can acquire it: {left} is left of the second client, "
        "whose acquire(blocking=False) returned False, and stays as long as its session"
    )


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
            show(port)
        finally:
            server.kill()
            server.wait()


if __name__ == "__main__":
    main()
