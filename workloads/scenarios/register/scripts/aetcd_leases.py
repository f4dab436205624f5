"""aetcd, Lock: every failed attempt leaves a lease in etcd until its TTL has passed.

Run with aetcd 1.0.0, etcd 3.4.23, Python 3.11.
Needs: pip install aetcd==1.0.0; Debian's etcd-server.
Exit 1 with an AssertionError where the defect shows, 0 where it does not.
"""

import asyncio
import json
import socket
import subprocess
import tempfile
import time
import urllib.request

import aetcd


def leases(port):
    request = urllib.request.Request(f"http://127.0.0.1:{port}/v3/lease/leases", data=b"{}")
    with urllib.request.urlopen(request, timeout=60) as answer:
        return len(json.load(answer).get("leases", []))


async def show(port):
    async with aetcd.Client(host="127.0.0.1", port=port) as client:
        if not await client.lock(b"job", ttl=600).acquire():
            raise RuntimeError("the lock was not free at the start")
        for _ in range(20):
            if await client.lock(b"job", ttl=600).acquire(timeout=0):
                raise RuntimeError("the lock was granted twice")
    left = leases(port)
    assert left <= 2, f"one hold and 20 attempts that failed, all ended: {left} leases in etcd"


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
