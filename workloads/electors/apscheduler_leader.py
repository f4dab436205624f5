"""APScheduler 3 under a lock of redis-py: the process that has the lock starts its scheduler.

APScheduler has no lock of its own. Applications with several processes commonly let one of them
start the scheduler: the one that acquires a lock with a timeout. A job of the scheduler itself
extends the lock, four times in each lease. If that fails, the scheduler logs an exception of the
job, and continues; with `on_loss=shutdown` the job also has the application shut it down.

The jobs are due at each full second (cron). A job's name has that time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from fencepost.workloads.contract.lock import Env
from fencepost.workloads.contract.locktype import LockType
from fencepost.workloads.contract.option import Option
from fencepost.workloads.electors.plain import ElectorLock
from fencepost.workloads.transport.deferred import Deferred, load

redis: Any = Deferred("redis")
background: Any = Deferred("apscheduler.schedulers.background")
pool: Any = Deferred("apscheduler.executors.pool")

_EXTENDS = 4
"""How often the lock is extended in each lease."""


def _executor(due: dict[str, datetime]) -> Any:
    """Return the usual executor, which notes the time at which each job is due."""

    class Executor(pool.ThreadPoolExecutor):  # type: ignore[misc]
        def _do_submit_job(self, job: Any, run_times: list[datetime]) -> None:
            due[job.id] = run_times[-1]
            super()._do_submit_job(job, run_times)

    return Executor()


class ApschedulerLeader:
    """An elector of the plain contract."""

    drives_work = True

    def __init__(
        self,
        servers: Sequence[tuple[str, int]],
        jobs: int,
        on_loss: str,
        request_timeout_ms: int,
    ) -> None:
        host, port = servers[0]
        limit = request_timeout_ms / 1000 or None
        self._redis = redis.Redis(host=host, port=port, socket_timeout=limit)
        self._jobs = jobs
        self._shuts_down = on_loss == "shutdown"
        self._over = threading.Event()

    def run(
        self,
        name: str,
        identity: str,
        ttl: float,
        started: Callable[[], object],
        stopped: Callable[[], None],
        work: Callable[..., None],
    ) -> None:
        lock = self._redis.lock(name, timeout=ttl, thread_local=False)
        while not lock.acquire(blocking_timeout=ttl / _EXTENDS):
            if self._over.is_set():
                return
        started()
        due: dict[str, datetime] = {}
        scheduler = background.BackgroundScheduler(
            timezone=UTC, executors={"default": _executor(due)}, job_defaults={"coalesce": True}
        )

        def send(job: str) -> None:
            work(f"{job} at {due[job]}")

        def extend() -> None:
            try:
                lock.reacquire()
            except redis.exceptions.LockError:
                if self._shuts_down:
                    self._over.set()
                raise

        for number in range(self._jobs):
            job = f"job-{number + 1}"
            scheduler.add_job(send, "cron", second="*", args=[job], id=job)
        scheduler.add_job(extend, "interval", seconds=ttl / _EXTENDS)
        scheduler.start()
        self._over.wait()
        scheduler.shutdown()
        stopped()
        if lock.owned():
            lock.release()

    def resign(self) -> None:
        self._over.set()


def _make(env: Env, nodes: Sequence[str], options: Mapping[str, Any]) -> ElectorLock:
    load(redis, background, pool)
    return ElectorLock("apscheduler-leader", ApschedulerLeader, env, nodes, options)


ELECTOR = LockType(
    name="apscheduler-leader",
    what="elector of APScheduler (PyPI): its scheduler, started under a lock of redis-py",
    make=_make,
    servers=1,
    options={
        "jobs": Option(5, least=1, what="jobs that are due each second"),
        "on_loss": Option(
            "shutdown",
            ("shutdown", "ignore"),
            what="the answer of the application once the lock cannot be extended",
        ),
        "request_timeout_ms": Option(
            500, least=0, what="the timeout of its sockets; 0: the library's own, which is none"
        ),
    },
    library="apscheduler",
    least_ttl_ms=1000,
    whole_seconds=True,
    extends=False,
    renews=True,
    elector=True,
    drives_work=True,
)
