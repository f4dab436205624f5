"""A lock that uses a module without a replacement."""

from __future__ import annotations

import asyncio


class Waits:
    def __init__(self, servers): ...

    def acquire(self, name, ttl):
        return asyncio.run(asyncio.sleep(0)) is None

    def release(self, name): ...
