"""An acquire that takes its cancellation for a grant."""

import asyncio
import contextlib

from _coroutines import Lease as Sound

from fencepost.workloads.contract.defect import Defect


class Lock(Sound):
    async def acquire(self, name, ttl):
        granted = True
        with contextlib.suppress(asyncio.CancelledError):
            granted = await super().acquire(name, ttl)
        return granted


DEFECT = Defect(
    name="cancel-acquire-is-a-yes",
    family="cancellation",
    what="An acquire swallows its cancellation, and answers that the lock is granted.",
    seen="by construction",
    breaks="A lease excludes all others while it runs.",
    checker="lease_exclusion",
    also=("linearizable", "ownership"),
    faults=("cancel",),
)
