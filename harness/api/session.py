"""Tests from Python, with the settings of the command line: one, or several on one cluster.

The cluster starts with the first run, and restarts if a later one needs more of it. It is removed
with the session, however that ends. Each session has its own cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fencepost.harness.api.result import Result
from fencepost.harness.cluster.cluster import Cluster
from fencepost.harness.execute.progress import Status
from fencepost.harness.execute.run import run as carry_out
from fencepost.harness.spec import from_arguments
from fencepost.harness.spec.needs import cluster_for, images, libraries, mounts, nodes
from fencepost.harness.spec.spec import Spec
from fencepost.harness.userlock.resolve import LockRequest, resolve

if TYPE_CHECKING:
    from fencepost.harness.api.hunted import Hunted
    from fencepost.harness.judge.judge import Outcome
    from fencepost.workloads.scenarios.scenario import Scenario


class Session:
    """Runs tests; to be used in a `with` block, or closed.

    with fencepost.Session() as session:
        for seed in range(3):
            session.run("redis", faults="pause", time="10s", seed=seed).assert_valid("service")

    `remote`, `hosts` and `leave_up`: as for `fencepost test`. `say` receives messages about the
    set-up.
    """

    def __init__(
        self,
        *,
        leave_up: bool = False,
        remote: str = "docker",
        hosts: Path | str | None = None,
        say: Callable[[str], None] = lambda text: None,
    ) -> None:
        self._leave_up = leave_up
        self._remote = remote
        self._hosts = None if hosts is None else Path(hosts)
        self._say = say
        self._stack = ExitStack()
        self._cluster: Cluster | None = None
        self._specs: list[Spec] = []

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Remove the cluster."""
        self._cluster, self._specs = None, []
        self._stack.close()

    def run(
        self,
        lock: str | type = "",
        *,
        servers: str = "",
        ends_with: str = "",
        promises: str | Sequence[str] = "",
        requirements: Path | str | None = None,
        program: str = "",
        ship: Path | str | None = None,
        elector: bool = False,
        client_image: str = "",
        options: Mapping[str, Any] | None = None,
        schedule: Path | str | None = None,
        progress: Callable[[Status], None] = lambda status: None,
        **settings: Any,
    ) -> Result:
        """Test a lock on the session's cluster, with the arguments and errors of
        `fencepost.run`."""
        needs = Path(requirements) if requirements is not None else None
        beside = from_arguments.beside(servers, settings)
        files = Path(ship) if ship is not None else None
        asked = LockRequest(
            servers, ends_with, needs, beside, program, files, client_image, promises, elector
        )
        name, own = resolve(lock, asked)
        spec = from_arguments.spec(name, options or {}, settings, own)
        spec, faults = from_arguments.scheduled(
            spec, Path(schedule) if schedule is not None else None
        )
        outcome = carry_out(spec, self._ready(spec), progress, schedule=faults)
        return Result(outcome.folder.resolve(), outcome.results)

    def hunt(self, lock: str | type, *, confirm: bool = False, **settings: Any) -> Hunted:
        """Search simulated runs of a lock for a schedule that breaks it. It needs no cluster, and
        starts one only to `confirm` a counterexample on real servers. For other arguments and
        errors, see `fencepost.harness.api.hunted.hunt`."""
        from fencepost.harness.api.hunted import hunt

        return hunt(lock, play=self._play if confirm else None, **settings)

    def _play(self, spec: Spec, scenario: Scenario) -> Outcome:
        return carry_out(spec, self._ready(spec), lambda status: None, scenario)

    def _ready(self, spec: Spec) -> Cluster:
        """Return the cluster, with everything that this test needs."""
        if self._cluster is None or self._lacks(spec):
            # Each run inspects external servers itself, and leaves them as they were.
            apart = spec.foreign or any(one.foreign for one in self._specs)
            both = [spec] if apart else [*self._specs, spec]
            self.close()
            self._stack = ExitStack()
            self._cluster = self._stack.enter_context(
                cluster_for(both, self._say, self._leave_up, self._remote, self._hosts)
            )
            self._specs = both
        return self._cluster

    def _lacks(self, spec: Spec) -> bool:
        assert self._cluster is not None
        more = not set(nodes([spec])) <= set(self._cluster.nodes)
        rights = mounts([spec]) and not mounts(self._specs)
        apart = spec.foreign or self._specs[-1].foreign
        known = libraries([spec]) <= libraries(self._specs) and images([spec]) <= images(
            self._specs
        )
        return bool(apart) or more or rights or not known


def run(
    lock: str | type = "",
    *,
    leave_up: bool = False,
    remote: str = "docker",
    hosts: Path | str | None = None,
    say: Callable[[str], None] = lambda text: None,
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

    `schedule` is a file of faults. Results are written to results/ or to FENCEPOST_RESULTS. `say`
    receives messages about the set-up, `progress` the status of the run twice a second.

    Raises:
        BadArguments: a setting or an option is invalid; nothing was started.
        Crashed, RemoteError: the cluster could not be brought up, or a node did not answer.
    """
    with Session(leave_up=leave_up, remote=remote, hosts=hosts, say=say) as session:
        return session.run(lock, **settings)
