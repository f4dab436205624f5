"""aetcd, Lock: `async with` enters its block after 10 s although another client has the lock.

Run with aetcd 1.0.0, etcd 3.4.23, Python 3.11.
Needs: pip install aetcd==1.0.0; Debian's etcd-server.
CONTROL=1 calls acquire() instead, and looks at its answer.
Exit 1 with an AssertionError where the defect shows, 0 where it does not.
"""

import asyncio
import os
import socket
import subprocess
import tempfile
import time

import aetcd


async def show(port):
    async with aetcd.Client(host="127.0.0.1", port=port) as client:
        first, second = (client.lock(b"job", ttl=600) for _ in range(2))
        if not await first.acquire():
            raise RuntimeError("the lock was not free at the start")
        entered = False
        if os.environ.get("CONTROL"):
            entered = await second.acquire()
        else:
            async with second:
                entered = True
        both = entered and await first.is_acquired()
    assert not both, "the second client is in its block, and the first one has the lock"


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def answers(port, server):
    for _ in range(1200):
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return
        except OSError:
            if server.poll() is not None:
                break
            time.sleep(0.05)
    raise RuntimeError("the server did not start")


def main():
    with tempfile.TemporaryDirectory() as folder:
        port, peers = free_port(), free_port()
        here, there = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{peers}"
        server = subprocess.Popen(
            [
                "etcd",
                "--data-dir",
                folder,
                "--listen-client-urls",
                here,
                "--advertise-client-urls",
                here,
                "--listen-peer-urls",
                there,
                "--initial-advertise-peer-urls",
                there,
                "--initial-cluster",
                f"default={there}",
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            answers(port, server)
            asyncio.run(show(port))
        finally:
            server.kill()
            server.wait()


if __name__ == "__main__":
    main()
