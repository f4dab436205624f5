"""RQ's scheduler: RQScheduler on a lock of Redis, in the loop of its `work`.

A candidate asks for the lock each second; RQ's own worker asks when it starts, and every ten
minutes. The one that has it renews the lock each second, and moves the jobs that are due from a
sorted set to their queue. A reign ends when a heartbeat finds the lock in other hands, and with
`stop`.

RQ moves all jobs that are due in one transaction. The write follows it at once and names them all.
Each job that was sent schedules a new one, due a second later, as a job that repeats itself does.

The lock lasts 60 s longer than the interval of the loop, so a lease of less than 61 s is not
possible.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any

from fencepost.workloads.contract.lock import Env
from fencepost.workloads.contract.locktype import LockType
from fencepost.workloads.contract.option import Option
from fencepost.workloads.electors.plain import ElectorLock
from fencepost.workloads.transport.deferred import Deferred, load

redis: Any = Deferred("redis")
rq: Any = Deferred("rq")
registry: Any = Deferred("rq.registry")
scheduler: Any = Deferred("rq.scheduler")

_BEYOND_S = 60
"""RQScheduler adds it to its interval, as the time of its lock."""
_RETRY_S = 1.0
_DUE = timedelta(seconds=1)


def _scheduler(stopped: Callable[[], None], work: Any, jobs: int) -> Any:
    """Return the class of a scheduler that reports its reign and its jobs."""

    class Jobs(registry.ScheduledJobRegistry):  # type: ignore[misc]
        """Notes the jobs of the transaction that moves them."""

        def __init__(self, *args: Any, **more: Any) -> None:
            super().__init__(*args, **more)
            self.moved: list[str] = []

        def remove(self, job: Any, *args: Any, **more: Any) -> Any:
            if not self.moved:
                work(point="before-send")
            self.moved.append(str(job))
            return super().remove(job, *args, **more)

    class Scheduler(scheduler.RQScheduler):  # type: ignore[misc]
        leads = True
        _scheduled_job_registries: list[Any]

        def prepare_registries(self, *args: Any, **more: Any) -> None:
            super().prepare_registries(*args, **more)
            self._scheduled_job_registries = [
                Jobs(one.name, connection=self.connection, serializer=self.serializer)
                for one in self._scheduled_job_registries
            ]

        def enqueue_scheduled_jobs(self) -> None:
            super().enqueue_scheduled_jobs()
            for one in self._scheduled_job_registries:
                moved, one.moved = one.moved, []
                if moved:
                    work(*moved)
                queue = rq.Queue(one.name, connection=self.connection)
                fresh = len(moved) or (0 if one.count else jobs)
                for _ in range(fresh):
                    queue.enqueue_in(_DUE, print)

        def heartbeat(self) -> None:
            super().heartbeat()
            if not self.acquired_locks:
                self._over()

        def stop(self) -> None:
            self._over()
            super().stop()

        def _over(self) -> None:
            if self.leads:
                self.leads = False
                stopped()

        def _install_signal_handlers(self) -> None:
            """Only a main thread can have them."""

    return Scheduler


class RqLeader:
    """An elector of the plain contract."""

    drives_work = True

    def __init__(
        self, servers: Sequence[tuple[str, int]], jobs: int, request_timeout_ms: int
    ) -> None:
        host, port = servers[0]
        limit = request_timeout_ms / 1000 or None
        self._redis = redis.Redis(host=host, port=port, socket_timeout=limit)
        self._jobs = jobs
        self._resigned = threading.Event()
        self._scheduler: Any = None

    def run(
        self,
        name: str,
        identity: str,
        ttl: float,
        started: Callable[[], object],
        stopped: Callable[[], None],
        work: Callable[..., None],
    ) -> None:
        self._scheduler = _scheduler(stopped, work, self._jobs)(
            [name],
            connection=self._redis,
            interval=round(ttl) - _BEYOND_S,
            logging_level="WARNING",
            name=identity,
        )
        while not self._scheduler.acquire_locks():
            if self._resigned.wait(_RETRY_S):
                return
        started()
        self._scheduler.work()

    def resign(self) -> None:
        self._resigned.set()
        self._scheduler.request_stop()


def _make(env: Env, nodes: Sequence[str], options: Mapping[str, Any]) -> ElectorLock:
    load(redis, rq, registry, scheduler)
    return ElectorLock("rq-leader", RqLeader, env, nodes, options)


ELECTOR = LockType(
    name="rq-leader",
    what="elector of RQ (PyPI): its scheduler, which enqueues the jobs that are due",
    make=_make,
    servers=1,
    options={
        "jobs": Option(5, least=1, what="jobs that are due each second"),
        "request_timeout_ms": Option(
            0, least=0, what="the timeout of its sockets; 0: the library's own, which is none"
        ),
    },
    library="rq",
    least_ttl_ms=61_000,
    usual_ttl_ms=61_000,
    whole_seconds=True,
    extends=False,
    renews=True,
    elector=True,
    drives_work=True,
    failpoints=("before-send",),
)
