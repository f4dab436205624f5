"""NATS, JetStream: revisions of a bucket with an age limit go back when another server leads it.

Run with nats-server 2.10.27 (Debian), nats-py 2.16.0, Python 3.11.
Needs: pip install nats-py==2.16.0; nats-server in the PATH.
Three servers keep the bucket, whose keys expire after a second. A client takes the lock whenever it
is free. A server that does not lead is stopped (SIGSTOP) for five seconds, and continues; when the
clients rest, leaders are killed and started again until that server leads. CONTROL=1: it is not
stopped.
Exit 1 with an AssertionError where the defect shows, 0 where it does not.
"""

import asyncio
import os
import signal
import socket
import subprocess
import tempfile
import time

import nats
from nats.errors import Error
from nats.js.errors import APIError, KeyWrongLastSequenceError

SERVERS = 3
TTL_S = 1
STOPPED_S = 5
KILLS = 20
CONTROL = bool(os.environ.get("CONTROL"))


class Lock:
    """A key that is created by each holder and expires."""

    def __init__(self, streams):
        self.streams, self.highest, self.bucket = streams, 0, None

    async def granted(self, limit_s=120):
        """Take the lock when it is free; return its revision."""
        end = time.monotonic() + limit_s
        while time.monotonic() < end:
            try:
                return await self.bucket.create("job", b"")
            except (APIError, Error, KeyWrongLastSequenceError):
                await asyncio.sleep(0.02)
        raise RuntimeError(f"the lock was not granted within {limit_s} s")

    async def use(self, lasts_s):
        end = time.monotonic() + lasts_s
        while time.monotonic() < end:
            self.highest = max(self.highest, await self.granted())


async def show(servers):
    client = await nats.connect(
        [f"nats://127.0.0.1:{port}" for port in servers.ports],
        connect_timeout=20,
        max_reconnect_attempts=-1,
        reconnect_time_wait=0.1,
        error_cb=ignored,
    )
    lock = Lock(client.jetstream(timeout=5))
    await made(lock.streams)
    lock.bucket = await lock.streams.key_value("locks")
    await lock.use(2)
    stopped = (await leads(lock.streams) + 1) % SERVERS
    if not CONTROL:
        servers.servers[stopped].send_signal(signal.SIGSTOP)
    await lock.use(STOPPED_S)
    servers.servers[stopped].send_signal(signal.SIGCONT)
    await lock.use(3)
    for _ in range(KILLS):
        leader = await leads(lock.streams)
        if leader == stopped:
            break
        await servers.again(leader)
    else:
        raise RuntimeError("the server that was stopped was never elected")
    revision = await lock.granted()
    await client.close()
    assert revision > lock.highest, (
        f"a client is granted the lock with revision {revision} after others with up to "
        f"{lock.highest}"
    )


async def ignored(error):
    """Ignore reports on the connection, which is made again."""


async def leads(streams):
    """Return the number of the server that leads the bucket, when the others follow it."""
    for _ in range(600):
        await asyncio.sleep(0.1)
        try:
            cluster = (await streams.stream_info("KV_locks")).cluster
        except (APIError, Error):
            continue
        if cluster.leader and all(one.current for one in cluster.replicas or []):
            return int(cluster.leader[1:])
    raise RuntimeError("no server leads the bucket")


async def made(streams):
    """Make the bucket as soon as the servers have elected a leader."""
    for _ in range(600):
        try:
            await streams.create_key_value(bucket="locks", replicas=SERVERS, ttl=TTL_S)
            return
        except (APIError, Error):
            await asyncio.sleep(0.2)
    raise RuntimeError("the servers do not keep a bucket")


def free_ports(count):
    listeners = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in listeners]
    for one in listeners:
        one.close()
    return ports


class Servers:
    def __init__(self, folder):
        self.folder, self.ports, self.peers = folder, free_ports(SERVERS), free_ports(SERVERS)
        self.servers = [start(folder, n, port, self.peers) for n, port in enumerate(self.ports)]

    async def again(self, number):
        """Kill a server, and start it again."""
        self.servers[number].kill()
        self.servers[number].wait()
        self.servers[number] = start(self.folder, number, self.ports[number], self.peers)
        await ready(self.ports[number], self.servers[number])

    def close(self):
        for server in self.servers:
            server.kill()
            server.wait()


def start(folder, number, port, peers):
    routes = ", ".join(f'"nats://127.0.0.1:{peer}"' for peer in peers)
    config = os.path.join(folder, f"{number}.conf")
    with open(config, "w") as file:
        file.write(
            f'server_name: n{number}\nlisten: "127.0.0.1:{port}"\n'
            f'jetstream {{ store_dir: "{folder}/{number}" }}\n'
            f'cluster {{ name: c, listen: "127.0.0.1:{peers[number]}", routes: [{routes}] }}\n'
        )
    command = ["nats-server", "--config", config]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


async def ready(port, server):
    for _ in range(1200):
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return
        except OSError:
            if server.poll() is not None:
                break
            await asyncio.sleep(0.05)
    raise RuntimeError("nats-server did not start")


async def main():
    with tempfile.TemporaryDirectory() as folder:
        servers = Servers(folder)
        try:
            for port, server in zip(servers.ports, servers.servers, strict=True):
                await ready(port, server)
            await show(servers)
        finally:
            servers.close()


if __name__ == "__main__":
    asyncio.run(main())
