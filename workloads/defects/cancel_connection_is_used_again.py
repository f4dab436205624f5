"""A connection on which the answer of a cancelled call is still to come, and that is used again."""

import asyncio
import uuid

from _lease import RELEASE

from fencepost.workloads.contract.defect import Defect


class Sound:
    def __init__(self, servers):
        self.server = servers[0]
        self.streams = None

    async def acquire(self, name, ttl):
        self.owner = uuid.uuid4().hex
        set_it = "SET", name, self.owner, "NX", "PX", int(ttl * 1000)
        return await self.ask(*set_it) == b"+OK"

    async def release(self, name):
        return await self.ask("EVAL", RELEASE, 1, name, self.owner) == b":1"

    async def ask(self, *words):
        try:
            async with asyncio.timeout(0.5):
                return await self.answer(*words)
        except asyncio.CancelledError:
            self.cancelled()
            raise
        except (TimeoutError, OSError):
            self.drop()
            raise

    async def answer(self, *words):
        if self.streams is None:
            self.streams = await asyncio.open_connection(*self.server)
        answers, requests = self.streams
        parts = [str(word).encode() for word in words]
        lines = [b"$%d\r\n%s\r\n" % (len(part), part) for part in parts]
        requests.write(b"*%d\r\n" % len(parts) + b"".join(lines))
        answer = await answers.readline()
        if not answer:
            raise ConnectionError("the server closed the connection")
        return answer.rstrip()

    def cancelled(self):
        self.drop()

    def drop(self):
        if self.streams is not None:
            self.streams[1].close()
            self.streams = None

    async def close(self):
        self.drop()


class Lock(Sound):
    def cancelled(self):
        pass


DEFECT = Defect(
    name="cancel-connection-is-used-again",
    family="cancellation",
    what="The connection of a cancelled call is used again, and answers that call to the next one.",
    seen="redis-py 4.5.1 to 4.5.3, CVE-2023-28858",
    breaks="Each answer is that of its own request.",
    checker="linearizable",
    also=("lease_exclusion", "ownership", "liveness"),
    faults=("cancel",),
)
