"""aetcd, Lock: `async with` enters its block after 10 s although another client has the lock.

Run with aetcd 1.0.0, etcd 3.4.23, Python 3.11.
Needs: pip install aetcd==1.0.0; Debian's etcd-server.
CONTROL=1 calls acquire() instead, and looks at its answer.
Exit 1 with an AssertionError where the defect shows, 0 where it does not.
"""

import asyncio
import os

import aetcd

from frame.etcd_server import etcd_server


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


if __name__ == "__main__":
    with etcd_server() as server:
        asyncio.run(show(server.port))
