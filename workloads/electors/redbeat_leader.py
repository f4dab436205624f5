"""celery-redbeat: Celery's beat on a lock of Redis.

A candidate is a `celery.beat.Service` with RedBeatScheduler, as `celery beat` starts one. It
acquires the lock when it starts, extends it at each tick, and sends the jobs that are due. A reign
begins with the first tick under the lock. It ends with `close`: after a tick that could not extend
the lock, or when the service is stopped.

A job is due a second after it was last sent. Its name has that last time, which the scheduler has
read from Redis. The job is the write: `send_task` is replaced, and the library does all else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fencepost.workloads.contract.lock import Env
from fencepost.workloads.contract.locktype import LockType
from fencepost.workloads.contract.option import Option
from fencepost.workloads.electors.plain import ElectorLock
from fencepost.workloads.transport.deferred import Deferred, load

celery: Any = Deferred("celery")
beat: Any = Deferred("celery.beat")
redbeat: Any = Deferred("redbeat.schedulers")

_EVERY_S = 1.0
"""Between two due times of a job."""


def _scheduler(started: Callable[[], object], stopped: Callable[[], None], work: Any) -> Any:
    """Return the class of a scheduler that reports its reign and its jobs."""

    class Scheduler(redbeat.RedBeatScheduler):  # type: ignore[misc]
        _leads = False
        _job = ""

        def tick(self, *args: Any, **more: Any) -> Any:
            if self.lock and not self._leads:
                self._leads = True
                started()
            return super().tick(*args, **more)

        def apply_async(self, entry: Any, *args: Any, **more: Any) -> Any:
            work(point="before-send")
            self._job = f"{entry.name} after {entry.last_run_at}"
            return super().apply_async(entry, *args, **more)

        def send_task(self, *args: Any, **more: Any) -> None:
            work(self._job)

        def close(self) -> None:
            if self._leads:
                self._leads = False
                stopped()
            super().close()

    return Scheduler


class RedbeatLeader:
    """An elector of the plain contract."""

    drives_work = True

    def __init__(
        self, servers: Sequence[tuple[str, int]], jobs: int, request_timeout_ms: int
    ) -> None:
        host, port = servers[0]
        self._url = f"redis://{host}:{port}/0"
        self._jobs = jobs
        self._request_timeout_ms = request_timeout_ms
        self._service: Any = None

    def run(
        self,
        name: str,
        identity: str,
        ttl: float,
        started: Callable[[], object],
        stopped: Callable[[], None],
        work: Callable[..., None],
    ) -> None:
        app = celery.Celery(identity, broker="memory://", set_as_current=False)
        entry = {"task": "job", "schedule": _EVERY_S}
        app.conf.update(
            redbeat_redis_url=self._url,
            redbeat_key_prefix=f"{name}:",
            redbeat_lock_timeout=round(ttl),
            beat_max_loop_interval=min(1.0, ttl / 5),
            beat_schedule={f"job-{number + 1}": entry for number in range(self._jobs)},
        )
        if self._request_timeout_ms:
            limit = {"socket_timeout": self._request_timeout_ms / 1000}
            app.conf.update(redbeat_redis_options=limit)
        self._service = beat.Service(app, scheduler_cls=_scheduler(started, stopped, work))
        self._service.start()

    def resign(self) -> None:
        self._service.stop()


def _make(env: Env, nodes: Sequence[str], options: Mapping[str, Any]) -> ElectorLock:
    load(celery, beat, redbeat)
    return ElectorLock("redbeat-leader", RedbeatLeader, env, nodes, options)


ELECTOR = LockType(
    name="redbeat-leader",
    what="elector of celery-redbeat (PyPI): the scheduler that sends Celery's periodic jobs",
    make=_make,
    servers=1,
    options={
        "jobs": Option(5, least=1, what="jobs that are due each second"),
        "request_timeout_ms": Option(
            0, least=0, what="the timeout of its sockets; 0: the library's own, which is none"
        ),
    },
    library="celery-redbeat",
    module="redbeat",
    least_ttl_ms=1000,
    whole_seconds=True,
    extends=False,
    renews=True,
    elector=True,
    drives_work=True,
    failpoints=("before-send",),
)
