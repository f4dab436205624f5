"""`fencepost.run`: run a test from Python, with the settings of the command line."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from fencepost.harness.api.result import Result
from fencepost.harness.api.session import Session
from fencepost.harness.execute.progress import Status


def run(
    lock: str | type = "",
    *,
    servers: str = "",
    ends_with: str = "",
    promises: str | Sequence[str] = "",
    requirements: Path | str | None = None,
    program: str = "",
    ship: Path | str | None = None,
    client_image: str = "",
    options: Mapping[str, Any] | None = None,
    schedule: Path | str | None = None,
    leave_up: bool = False,
    remote: str = "docker",
    hosts: Path | str | None = None,
    say: Callable[[str], None] = lambda text: None,
    progress: Callable[[Status], None] = lambda status: None,
    **settings: Any,
) -> Result:
    """Test a lock: bring its cluster up, run clients and faults, judge, and remove the cluster.

        result = fencepost.run("redlock", faults="partition,pause", time="30s", seed=7)
        result.assert_valid("service")
        print(result.report, result.verdicts["lease_exclusion"].summary)

    `settings` are those of `fencepost test --help`, with `_` for `-` in their names, written as
    there or as numbers and lists: `ttl="500ms"`, `failed_release="nothing"`, `faults=["pause"]`.
    Numbers for times are seconds. `options` are the lock's own (`fencepost locks redlock`).

    A user lock is FILE.py:CLASS or the class itself, with its `servers`, for example "redis:1",
    `ends_with` if its grants end differently from the usual on these servers, its `promises` in
    addition to exclusion (`["fifo"]`), and a file of its `requirements` (docs/your-lock.md). One in
    another language is a `program`, with its working folder (`ship`) and the image of its clients.
    `containers`, or `compose` with its services as `servers`, are external servers
    (docs/your-servers.md).

    Results are written to results/ or to FENCEPOST_RESULTS. `say` receives messages about the
    set-up, `progress` the status of the run twice a second.

    Raises:
        BadArguments: a setting or an option is invalid; nothing was started.
        Crashed, RemoteError: the cluster could not be brought up, or a node did not answer.
    """
    with Session(leave_up=leave_up, remote=remote, hosts=hosts, say=say) as session:
        return session.run(
            lock,
            servers=servers,
            ends_with=ends_with,
            promises=promises,
            requirements=requirements,
            program=program,
            ship=ship,
            client_image=client_image,
            options=options,
            schedule=schedule,
            progress=progress,
            **settings,
        )
