"""aetcd, Lock: every failed attempt leaves a lease in etcd until its TTL has passed.

Run with aetcd 1.0.0, etcd 3.4.23, Python 3.11.
Needs: pip install aetcd==1.0.0; Debian's etcd-server.
Exit 1 with an AssertionError where the defect shows, 0 where it does not.
"""

import asyncio
import json
import urllib.request

import aetcd

from frame.etcd_server import etcd_server


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


if __name__ == "__main__":
    with etcd_server() as server:
        asyncio.run(show(server.port))
