"""A release that takes its cancellation for a success."""

import asyncio
import contextlib

from _coroutines import Lease as Sound

from fencepost.workloads.contract.defect import Defect


class Lock(Sound):
    async def release(self, name):
        released = True
        with contextlib.suppress(asyncio.CancelledError):
            released = await super().release(name)
        return released


DEFECT = Defect(
    name="cancel-release-is-a-yes",
    family="cancellation",
    what="A release swallows its cancellation, and answers that the lock is free.",
    seen="by construction",
    breaks="Only a lock that is held is refused.",
    checker="liveness",
    faults=("cancel:holder",),  # a cancelled acquire may be granted at any later time
    promises=("true_refusals",),
    clients=2,
)
