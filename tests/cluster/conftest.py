"""Start real servers, once a worker; results go to a folder of the test's own."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from fencepost.checker import receipts
from fencepost.checker.verdict import Verdict
from fencepost.harness.clients.recorder import Recorder, finish
from fencepost.harness.cluster import image, projects, provision
from fencepost.harness.cluster.cluster import Cluster
from fencepost.harness.cluster.compose import ComposeCluster
from fencepost.harness.command import app
from fencepost.harness.execute.run import Outcome, run
from fencepost.harness.execute.scripted import of_suite
from fencepost.harness.execute.server_fleet import ServerFleet
from fencepost.harness.execute.site import RunSite
from fencepost.harness.servers.wait import silent
from fencepost.harness.spec.spec import Spec
from fencepost.harness.spec.validation import validate
from fencepost.nemesis.director import Director
from fencepost.workloads.locks.registry import LOCKS
from fencepost.workloads.scenarios.runs import SHORT
from fencepost.workloads.scenarios.scenario import Scenario
from tests.cluster import own
from tests.cluster.healed import Command
from tests.cluster.healed import command as fencepost

REDIS = [f"redis-{n}" for n in range(1, 6)]
CLIENTS = [f"client-{n}" for n in range(1, 6)]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.cluster)


# Modules whose tests one worker runs, in their order: they have a cluster or servers of their own,
# or containers of other users, by names ("others").
_OTHERS = ("test_foreign", "test_foreign_kinds", "test_kept", "test_others")
TOGETHER = {
    name: name
    for name in ("test_clocks", "test_docs_run", "test_elsewhere", "test_models", "test_ssh")
} | dict.fromkeys(_OTHERS, "others")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Let workers take single tests, but those of some modules together."""
    from xdist.scheduler import LoadScopeScheduling

    class Scheduling(LoadScopeScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            return TOGETHER.get(Path(nodeid.partition("::")[0]).stem, nodeid)

    return Scheduling(config, log)


@pytest.fixture(scope="session", autouse=True)
def clusters_of_this_process(request: pytest.FixtureRequest) -> Iterator[None]:
    """Give each worker of xdist clusters of its own, which no other worker's commands see.

    So `heal` and every run remove the remains of the worker's own commands, and no others.
    """
    workers = getattr(request.config, "workerinput", None)
    with pytest.MonkeyPatch.context() as patch:
        if workers is not None:
            patch.setenv(projects.CLUSTERS, own.share(workers["workerid"], workers["workercount"]))
        yield


@pytest.fixture(scope="session")
def shared(clusters_of_this_process: None) -> Iterator[ComposeCluster]:
    """One cluster for all modules; each adds the nodes that it needs."""
    with provision.brought_up(["storage", *CLIENTS], print) as nodes:
        assert isinstance(nodes, ComposeCluster)
        own.SHARED.add(nodes.project)
        yield nodes
    own.SHARED.clear()


@pytest.fixture(scope="module")
def cluster(request: pytest.FixtureRequest, shared: ComposeCluster) -> ComposeCluster:
    """The shared cluster, with the servers that the module names in SERVERS, or five of Redis.

    Each run empties and restarts the servers that it uses.
    """
    name = image.ensure(print)
    image.must_hold(name, getattr(request.module, "PACKAGED", ()))
    shared.up([*getattr(request.module, "SERVERS", REDIS), *shared.nodes], name)
    return shared


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FENCEPOST_RESULTS", str(tmp_path / "results"))
    return tmp_path / "results"


@pytest.fixture(scope="module")
def kept_up() -> Iterator[None]:
    """Keep a cluster running, which commands then use one after another."""
    code, said = fencepost("cluster", "up", "redis-1", "storage", *CLIENTS)
    assert code == 0, said
    yield
    fencepost("cluster", "down")
    assert own.nodes() == []


ENDING = (signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP)


@pytest.fixture
def in_process(
    results: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Iterator[Command]:
    """Run the command line in this process; return its exit code and output."""
    handlers = {number: signal.getsignal(number) for number in ENDING}

    def call(*words: str) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["fencepost", *words])
        code = app.run()
        return code, "".join(capfd.readouterr())

    yield call
    for number, handler in handlers.items():
        signal.signal(number, handler)


@pytest.fixture
def here(
    in_process: Command, cluster: ComposeCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Command:
    """Run a command in the test's folder and on the shared cluster, to which it adds its nodes.

    What starts and ends with a command is tested on clusters of its own (test_command.py).
    """

    @contextmanager
    def shared(
        nodes: Iterable[str], say: Any, leave_up: Any, libraries: Iterable[str], way: Any
    ) -> Iterator[ComposeCluster]:
        name = image.ensure(print)
        image.must_hold(name, libraries)
        cluster.up([*nodes, *cluster.nodes], name)
        yield cluster

    monkeypatch.setattr(provision, "brought_up", shared)
    monkeypatch.chdir(tmp_path)

    def call(*words: str) -> tuple[int, str]:
        code, said = in_process(*words)
        return code, " ".join(said.split())

    return call


def emptied(cluster: Cluster, lock: str) -> ServerFleet:
    """Return a lock's servers on these nodes, restarted without data."""
    fleet = ServerFleet(Spec("emptied", lock, LOCKS[lock].read_options({})), cluster)
    with ThreadPoolExecutor(16) as pool:
        for starting in fleet.begin_anew(pool, silent):
            starting.result()
    return fleet


RunTest = Callable[..., Outcome]


@pytest.fixture
def run_test(cluster: ComposeCluster, results: Path) -> RunTest:
    """Run a test on the module's cluster: `run_test(lock, scenario=None, **spec)`."""

    def carry_out(
        lock: str,
        scenario: Scenario | None = None,
        options: dict[str, Any] | None = None,
        **spec: Any,
    ) -> Outcome:
        chosen = LOCKS[lock].read_options({}) | (options or {})
        if scenario is None:
            # Counted from the run's start: on a busy machine clients take seconds to start.
            usual = {"time_s": 3.0, "seed": 1, "concurrency": 3, "liveness_bound_s": 30.0, **SHORT}
            described = validate(Spec(lock, lock, chosen, **usual | spec))
        else:
            described = of_suite(lock, lock, scenario, 1, **spec)
        return run(described, cluster, lambda status: None, scenario)

    return carry_out


@pytest.fixture
def run_until(run_test: RunTest) -> Callable[..., Outcome]:
    """Run a test for 3 s, and for longer as long as a condition on its outcome does not hold:
    `run_until(condition, lock, **spec)`. On a busy machine a short run has few holds."""

    def carry_out(condition: Callable[[Outcome], bool], lock: str, **spec: Any) -> Outcome:
        for time_s in (3.0, 9.0):
            outcome = run_test(lock, time_s=time_s, **spec)
            if condition(outcome):
                return outcome
        return run_test(lock, time_s=27.0, **spec)

    return carry_out


def has_holds(outcome: Outcome) -> bool:
    """Tell whether a run has a verdict worth a test: it is refuted, or the lock was held often."""
    return outcome.valid is not True or outcome.results["stats"]["holds"] > 5


class Bench:
    """A lock's servers and clients, and a director whose ops are kept."""

    def __init__(
        self,
        cluster: Cluster,
        folder: Path,
        lock: str,
        options: Mapping[str, str] | None = None,
        **spec: Any,
    ) -> None:
        self.spec = Spec("faults", lock, LOCKS[lock].read_options(options or {}), **spec)
        self.recorder = Recorder(folder / "history.jsonl")
        self.site = RunSite(self.spec, cluster, self.recorder)
        self.site.prepare()
        self.site.client_fleet.start()
        self.director = Director(
            self.site,
            lambda type, f, value, error: self.recorder.op("nemesis", type, f, value, error),
        )

    def run(self, node: str, *argv: str) -> str:
        return self.site.remote(node).run(list(argv), timeout_s=30).out.strip()

    def close(self) -> None:
        self.director.heal_all()
        self.site.client_fleet.close()
        self.recorder.close()

    def judge(self) -> Verdict:
        """Check the history's faults, once all are healed."""
        self.close()
        return receipts.check(finish(self.recorder.path), {})
