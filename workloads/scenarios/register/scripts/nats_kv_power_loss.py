"""NATS, JetStream: a lock that was granted is gone after a loss of power.

Run with nats-server 2.9.10 (Debian), nats-py 2.16.0, Python 3.11.
Needs: pip install nats-py==2.16.0; nats-server in the PATH; root, for a file system in a file.
That file is copied as it is when the server is killed. Writes that the kernel has not put into it
by then are lost, as with the power. CONTROL=1 lets the kernel write everything before.
Exit 1 with an AssertionError where the defect shows, 0 where it does not.
"""

import asyncio
import os
import shutil
import subprocess
import tempfile
from contextlib import contextmanager

import nats
from nats.js.errors import KeyWrongLastSequenceError

from frame.processes import free_port, running

SIZE_MB = 64


async def bucket(port):
    connection = await nats.connect(f"nats://127.0.0.1:{port}")
    await connection.jetstream().create_key_value(bucket="locks")
    await connection.close()


async def granted(port, client):
    """Return whether a client is granted the lock: it creates a key that no other one has."""
    connection = await nats.connect(f"nats://127.0.0.1:{port}")
    try:
        locks = await connection.jetstream().key_value("locks")
        await locks.create("job", client)
    except KeyWrongLastSequenceError:
        return False
    finally:
        await connection.close()
    return True


def show(folder):
    if os.geteuid():
        raise RuntimeError("only root can mount a file system")
    disk, copy = (os.path.join(folder, name) for name in ("disk", "copy"))
    subprocess.run(["truncate", "-s", f"{SIZE_MB}M", disk], check=True)
    subprocess.run(["mkfs.ext4", "-q", "-F", disk], check=True)
    with mounted(disk, folder) as place:
        with nats_server(place) as server:
            asyncio.run(bucket(server.port))
        subprocess.run(["sync", "-f", place], check=True)  # the bucket is kept
        with nats_server(place) as server:
            if not asyncio.run(granted(server.port, b"first")):
                raise RuntimeError("the lock was not free at the start")
        if os.environ.get("CONTROL"):
            subprocess.run(["sync", "-f", place], check=True)
        shutil.copyfile(disk, copy)
    with mounted(copy, folder) as place, nats_server(place) as server:
        both = asyncio.run(granted(server.port, b"second"))
    assert not both, (
        "the server acknowledged the key of the first client, and lost it with its power: the second "
        "one is granted the lock"
    )


def nats_server(place):
    port = free_port()
    return running(["nats-server", "-a", "127.0.0.1", "-p", str(port), "-js", "-sd", place], port)


@contextmanager
def mounted(disk, folder):
    place = os.path.join(folder, "place")
    os.makedirs(place, exist_ok=True)
    subprocess.run(["mount", "-o", "loop", disk, place], check=True)
    try:
        yield place
    finally:
        subprocess.run(["umount", place], check=True)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        show(folder)
