"""`fencepost.run`: a test called from Python, with the settings that the command line has."""

from __future__ import annotations

from collections.abc import Callable, Mapping
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

    `settings` are those of `fencepost test --help`, named as there with `_` for `-`, written as
    there or as numbers and lists: `ttl="500ms"`, `failed_release="nothing"`, `faults=["pause"]`.
    Numbers for times are seconds. `options` are the lock's own (`fencepost locks redlock`).
    A lock of yours is FILE.py:CLASS or the class itself, with its `servers`, "redis:1" say, and
    what ends its grants, if that is not what is usual on them, and a file of its `requirements`
    (docs/your-lock.md). One in another language is a `program`, with the folder that it is run in
    (`ship`) and the image that its clients run in. `containers`, or `compose` with its services as
    `servers`, are servers that are there already (docs/your-servers.md).
    Results are written to results/ or where FENCEPOST_RESULTS says. `say` is told what is being
    set up, `progress` twice a second how the run goes.

    Raises:
        BadArguments: a setting or an option makes no sense; nothing was started.
        Crashed, RemoteError: the cluster could not be brought up, or a node did not answer.
    """
    with Session(leave_up=leave_up, remote=remote, hosts=hosts, say=say) as session:
        return session.run(
            lock,
            servers=servers,
            ends_with=ends_with,
            requirements=requirements,
            program=program,
            ship=ship,
            client_image=client_image,
            options=options,
            schedule=schedule,
            progress=progress,
            **settings,
        )
