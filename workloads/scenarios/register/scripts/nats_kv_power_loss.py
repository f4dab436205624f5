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
import socket
import subprocess
import tempfile
import time
from contextlib import contextmanager

import nats
from nats.js.errors import KeyWrongLastSequenceError

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
        with running(place) as port:
            asyncio.run(bucket(port))
        subprocess.run(["sync", "-f", place], check=True)  # the bucket is kept
        with running(place) as port:
            if not asyncio.run(granted(port, b"first")):
                raise RuntimeError("the lock was not free at the start")
        if os.environ.get("CONTROL"):
            subprocess.run(["sync", "-f", place], check=True)
        shutil.copyfile(disk, copy)
    with mounted(copy, folder) as place, running(place) as port:
        both = asyncio.run(granted(port, b"second"))
    assert not both, (
        "the server acknowledged the key of the first client, and lost it with its power: the second "
        "one is granted the lock"
    )


@contextmanager
def mounted(disk, folder):
    place = os.path.join(folder, "place")
    os.makedirs(place, exist_ok=True)
    subprocess.run(["mount", "-o", "loop", disk, place], check=True)
    try:
        yield place
    finally:
        subprocess.run(["umount", place], check=True)


@contextmanager
def running(place):
    """Run a server, and kill it at the end."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    command = ["nats-server", "-a", "127.0.0.1", "-p", str(port), "-js", "-sd", place]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        answers(port, server)
        yield port
    finally:
        server.kill()
        server.wait()


def answers(port, server):
    for _ in range(1200):
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return
        except OSError:
            if server.poll() is not None:
                break
            time.sleep(0.05)
    raise RuntimeError("nats-server did not start")


def main():
    with tempfile.TemporaryDirectory() as folder:
        show(folder)


if __name__ == "__main__":
    main()
