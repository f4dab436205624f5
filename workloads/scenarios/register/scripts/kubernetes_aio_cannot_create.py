"""kubernetes.aio, leaderelection: no candidate can create the Lease, so none ever leads.

Run with kubernetes 37.0.2, aiohttp 3.14.5, pydantic 2.14.4, Python 3.11.
Needs: pip install kubernetes==37.0.2 aiohttp aiohttp-retry pydantic; no server: the file has a
stand-in for the API server that keeps one Lease and refuses an old resourceVersion.
CONTROL=1 creates an empty Lease before.
Exit 1 with an AssertionError where the defect shows, 0 where it does not.
"""

import asyncio
import os

from kubernetes.aio import client
from kubernetes.aio.leaderelection import electionconfig, leaderelection
from kubernetes.aio.leaderelection.resourcelock.leaselock import LeaseLock

from frame.kubernetes_api import Api, serve


async def create(api):
    empty = client.V1Lease(metadata=client.V1ObjectMeta(name="job"), spec=client.V1LeaseSpec())
    await client.CoordinationV1Api(api).create_namespaced_lease("default", empty)


async def show(url):
    leads = asyncio.Event()

    async def begins():
        leads.set()

    async with client.ApiClient(client.Configuration(host=url)) as api:
        if os.environ.get("CONTROL"):
            await create(api)
        config = electionconfig.Config(
            LeaseLock("job", "default", "a", api),
            lease_duration=15,
            renew_deadline=10,
            retry_period=2,
            onstarted_leading=begins,
            onstopped_leading=None,
        )
        run = asyncio.create_task(leaderelection.LeaderElection(config).run())
        until = asyncio.create_task(leads.wait())
        await asyncio.wait({run, until}, timeout=300, return_when=asyncio.FIRST_COMPLETED)
        assert leads.is_set(), (
            f"the only candidate does not lead: run() raised {run.exception()!r}"
            if run.done()
            else "the only candidate does not lead after 300 s"
        )
        run.cancel()


if __name__ == "__main__":
    asyncio.run(show(serve(Api())))
