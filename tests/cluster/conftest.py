"""Start real servers, once a module; results go to a folder of the test's own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from fencepost.checker import receipts
from fencepost.checker.verdict import Verdict
from fencepost.harness.clients.recorder import Recorder, finish
from fencepost.harness.cluster.cluster import Cluster
from fencepost.harness.cluster.compose import ComposeCluster
from fencepost.harness.cluster.provision import brought_up
from fencepost.harness.execute.run import Outcome, run
from fencepost.harness.execute.scripted import of_suite
from fencepost.harness.execute.site import RunSite
from fencepost.harness.spec.spec import Spec
from fencepost.harness.spec.validation import validate
from fencepost.nemesis.director import Director
from fencepost.workloads.locks.registry import LOCKS
from fencepost.workloads.scenarios.runs import SHORT
from fencepost.workloads.scenarios.scenario import Scenario

REDIS = [f"redis-{n}" for n in range(1, 6)]
CLIENTS = [f"client-{n}" for n in range(1, 6)]


# They look at everything that the engine has, stop the engine, or start runs of other commands.
ALONE = {
    "test_command", "test_docs_run", "test_elsewhere", "test_foreign", "test_foreign_kinds",
    "test_injected", "test_ssh", "test_two_runs", "test_xdist",
}  # fmt: skip


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.cluster)
            if item.path.stem in ALONE:
                item.add_marker(pytest.mark.alone)


@pytest.fixture(scope="module")
def cluster() -> Iterator[ComposeCluster]:
    with brought_up([*REDIS, "storage", *CLIENTS], print) as nodes:
        yield nodes


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FENCEPOST_RESULTS", str(tmp_path / "results"))
    return tmp_path / "results"


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
            usual = {"time_s": 3.0, "seed": 1, "liveness_bound_s": 30.0, **SHORT}
            described = validate(Spec(lock, lock, chosen, **usual | spec))
        else:
            described = of_suite(lock, lock, scenario, 1, **spec)
        return run(described, cluster, lambda status: None, scenario)

    return carry_out


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
