"""NATS, JetStream: two clients that write one revision of a key at the same time both succeed.

Run with nats-server 2.9.10 (Debian), nats-py 2.16.0, Python 3.11. 2.10.27 and 2.15.1 refuse one.
Needs: pip install nats-py==2.16.0; nats-server in the PATH.
Three servers keep the bucket. The two that do not lead it are stopped (SIGSTOP) while the clients
ask, as if their links were slow. CONTROL=1: they are not, and the second client asks when the first
has its answer.
Exit 1 with an AssertionError where the defect shows, 0 where it does not.
"""

import asyncio
import os
import signal
import tempfile
from contextlib import ExitStack

import nats
from nats.errors import Error
from nats.js.errors import APIError, KeyWrongLastSequenceError

from frame.processes import free_ports, running

SERVERS = 3
STOPPED_S = 0.5
CONTROL = bool(os.environ.get("CONTROL"))


async def granted(bucket, free, client):
    """Return whether a client is granted the lock: it replaces the revision `free`, by which the
    last holder deleted the key. `KeyValue.create` does the same when it finds a deleted key."""
    try:
        await bucket.update("job", client, last=free)
    except KeyWrongLastSequenceError:
        return False
    return True


async def show(servers):
    first = await connected(servers[0])
    streams = first.jetstream(timeout=20)
    await made(streams)
    leader = await leads(streams)
    clients = [await connected(servers[leader]) for _ in range(2)]
    buckets = [await one.jetstream(timeout=20).key_value("locks") for one in clients]
    await buckets[0].create("job", b"the last holder")
    await buckets[0].delete("job")
    free = (await streams.stream_info("KV_locks")).state.last_seq
    asked = [granted(bucket, free, b"%d" % n) for n, bucket in enumerate(buckets)]
    if CONTROL:
        told = [await one for one in asked]
    else:
        others = [one for n, one in enumerate(servers) if n != leader]
        for one in others:
            one.process.send_signal(signal.SIGSTOP)
        answers = asyncio.gather(*asked)
        await asyncio.sleep(STOPPED_S)
        for one in others:
            one.process.send_signal(signal.SIGCONT)
        told = await answers
    for one in (first, *clients):
        await one.close()
    if not any(told):
        raise RuntimeError("no client was granted a lock that was free")
    assert not all(told), "the server answered both clients that they have the lock"


async def leads(streams):
    """Return the number of the server that leads the bucket, when the others follow it."""
    for _ in range(600):
        cluster = (await streams.stream_info("KV_locks")).cluster
        if cluster.leader and all(one.current for one in cluster.replicas or []):
            return int(cluster.leader[1:])
        await asyncio.sleep(0.1)
    raise RuntimeError("no server leads the bucket")


async def made(streams):
    """Make the bucket as soon as the servers have elected a leader."""
    for _ in range(600):
        try:
            await streams.create_key_value(bucket="locks", replicas=SERVERS)
            return
        except (APIError, Error):
            await asyncio.sleep(0.2)
    raise RuntimeError("the servers do not keep a bucket")


async def connected(server):
    return await nats.connect(f"nats://127.0.0.1:{server.port}", connect_timeout=20)


def nats_server(folder, number, port, peers):
    routes = ", ".join(f'"nats://127.0.0.1:{peer}"' for peer in peers)
    config = os.path.join(folder, f"{number}.conf")
    with open(config, "w") as file:
        file.write(
            f'server_name: n{number}\nlisten: "127.0.0.1:{port}"\n'
            f'jetstream {{ store_dir: "{folder}/{number}" }}\n'
            f'cluster {{ name: c, listen: "127.0.0.1:{peers[number]}", routes: [{routes}] }}\n'
        )
    return running(["nats-server", "--config", config], port)


if __name__ == "__main__":
    ports, peers = free_ports(SERVERS), free_ports(SERVERS)
    with tempfile.TemporaryDirectory() as folder, ExitStack() as ends:
        servers = [
            ends.enter_context(nats_server(folder, n, port, peers)) for n, port in enumerate(ports)
        ]
        asyncio.run(show(servers))
