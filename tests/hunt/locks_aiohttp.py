"""A lock on etcd's JSON gateway, by aiohttp: a key under a lease of its own."""

from __future__ import annotations

import base64
import math
import time
import uuid

import aiohttp

import fencepost


def coded(text):
    return base64.b64encode(text.encode()).decode()


class Lock:
    def __init__(self, servers):
        self.base = "http://{}:{}/v3".format(*servers[0])
        self.session = None
        self.held = {}

    async def post(self, path, body):
        if self.session is None:
            self.session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=0.8))
        async with self.session.post(self.base + path, json=body) as answer:
            answer.raise_for_status()
            return await answer.json(content_type=None)

    async def acquire(self, name, ttl):
        until = time.monotonic() + ttl
        lease = (await self.post("/lease/grant", {"TTL": math.ceil(ttl)}))["ID"]
        key, value = coded(name), coded(uuid.uuid4().hex)
        free = {"key": key, "target": "CREATE", "result": "EQUAL", "create_revision": 0}
        put = {"request_put": {"key": key, "value": value, "lease": lease}}
        answer = await self.post("/kv/txn", {"compare": [free], "success": [put]})
        if not answer.get("succeeded"):
            await self.post("/lease/revoke", {"ID": lease})
            return False
        self.held[name] = lease
        return fencepost.Grant(token=int(answer["header"]["revision"]), deadline=until)

    async def release(self, name):
        await self.post("/lease/revoke", {"ID": self.held.pop(name)})
        return True

    async def close(self):
        if self.session is not None:
            await self.session.close()
