"""ZooKeeper: a follower that crashes while it synchronizes by DIFF erases acknowledged writes.

Run with ZooKeeper 3.8.0 (Debian's) and 3.9.3, kazoo 2.11.0, Java 17, Python 3.11.
Needs: pip install kazoo==2.11.0; Debian's zookeeper (java, no service).
JARS is the folder of its jars, /usr/share/java unless set.
CONTROL=1 kills the follower once its log has all writes.
Exit 1 with an AssertionError where the defect shows, 0 where it does not.

No file is changed and no disk is lost: servers are only killed (SIGKILL) and started again. One
follower is down while a lock is granted. It comes back when the other follower is down, which makes
a new epoch. It records the epoch and then logs the writes of the leader; it is killed between the
two. With the newer epoch it leads the other follower, which has the lock, and erases it there.
"""

import logging
import os
import socket
import subprocess
import tempfile

from kazoo.client import KazooClient
from kazoo.exceptions import NodeExistsError
from kazoo.retry import KazooRetry

from frame.processes import free_ports, wait_for
from frame.zookeeper_server import zookeeper

CRASH_EARLY = not os.environ.get("CONTROL")
ROUNDS = 2 if CRASH_EARLY else 1
# Missed by the follower, at most 500 writes: so it takes a while to log them.
WRITES, SIZE = 200, 50_000
SESSION_S = 100
CONFIG = """tickTime=1000
initLimit=30
syncLimit=30
maxSessionTimeout=200000
clientPort={port}
clientPortAddress=127.0.0.1
dataDir={folder}
admin.enableServer=false
4lw.commands.whitelist=srvr
"""


class Server:
    def __init__(self, folder, number, ports, all_ports):
        self.folder, self.port, self.process = os.path.join(folder, str(number)), ports[0], None
        os.mkdir(self.folder)
        self.write("myid", str(number))
        lines = [
            f"server.{n}=127.0.0.1:{peer}:{vote}"
            for n, (_, peer, vote) in enumerate(all_ports, start=1)
        ]
        config = CONFIG.format(port=self.port, folder=self.folder) + "\n".join(lines) + "\n"
        self.config = self.write("zoo.cfg", config)

    def write(self, name, content):
        place = os.path.join(self.folder, name)
        with open(place, "w") as file:
            file.write(content)
        return place

    def start(self):
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self.process = subprocess.Popen(zookeeper(self.config, "-Xmx256m"), **quiet)

    def kill(self):
        if self.process:
            self.process.kill()
            self.process.wait()

    def mode(self):
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1) as connection:
                connection.sendall(b"srvr")
                said = connection.makefile("r").read()
        except OSError:
            return ""
        return said.partition("Mode: ")[2].partition("\n")[0]

    def epoch(self):
        try:
            with open(os.path.join(self.folder, "version-2", "currentEpoch")) as file:
                return int(file.read() or 0)
        except OSError:  # between two files
            return 0

    def logged(self):
        """Return how many bytes of writes the server has logged (its files are filled with 0)."""
        place = os.path.join(self.folder, "version-2")
        size = 0
        for name in os.listdir(place):
            if name.startswith("log."):
                with open(os.path.join(place, name), "rb") as file:
                    size += len(file.read().rstrip(b"\0"))
        return size


def show(folder):
    ports = free_ports(9)
    ports = [ports[n : n + 3] for n in (0, 3, 6)]
    servers = [Server(folder, n, own, ports) for n, own in enumerate(ports, start=1)]
    hosts = ",".join(f"127.0.0.1:{one.port}" for one in servers)
    clients = [
        KazooClient(hosts, timeout=SESSION_S, connection_retry=KazooRetry(-1, delay=0.1, backoff=1))
        for _ in range(2)
    ]
    try:
        for one in servers:
            one.start()
        wait_for(lambda: all(one.mode() for one in servers), "the servers do not serve")
        leader = next(one for one in servers if one.mode() == "leader")
        crashing, other = [one for one in servers if one is not leader]
        first, second = clients
        for client in clients:
            client.start(60)
        session = first.client_id[0]
        crashing.kill()

        # The leader and one follower acknowledge the lock of the first client.
        first.retry(first.ensure_path, "/writes")
        for n in range(WRITES):
            first.retry(first.create, f"/writes/{n}", bytes([n % 255 + 1]) * SIZE)
        first.create("/lock", b"first", ephemeral=True)
        other.kill()

        # The leader and the follower that was down make a new epoch; the follower crashes in it.
        epoch, size = crashing.epoch(), other.logged()
        crashing.start()
        wait_for(lambda: crashing.epoch() > epoch, "no new epoch", every_s=0.0002)
        if not CRASH_EARLY:
            wait_for(lambda: crashing.logged() >= WRITES * SIZE, "the writes are not logged")
            wait_for(crashing.mode, "the follower does not serve")
        crashing.kill()
        print(f"the follower crashed with {crashing.logged()} of {size} bytes in its log")
        leader.kill()

        # Both followers start again: a majority, of which one has all acknowledged writes.
        other.start()
        crashing.start()
        wait_for(lambda: crashing.mode() and other.mode(), "the followers do not serve")
        wait_for(lambda: first.connected and second.connected, "the clients do not come back")
        try:
            second.retry(second.create, "/lock", b"second", ephemeral=True)
        except NodeExistsError:
            return
        if first.client_id[0] != session:
            raise RuntimeError("the session of the first client has ended")
        left = len(second.get_children("/writes")) if second.exists("/writes") else 0
        raise AssertionError(
            "the second client has created the lock that the first holds: the session of the first "
            f"lasts, and {left} of {WRITES} writes are left that were acknowledged before its lock"
        )
    finally:
        for client in clients:
            client.stop()
        for one in servers:
            one.kill()


if __name__ == "__main__":
    logging.disable()  # kazoo reports each lost connection
    for _ in range(ROUNDS):
        with tempfile.TemporaryDirectory() as folder:
            show(folder)
