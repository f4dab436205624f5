"""A user's tests under pytest-xdist: each worker has a cluster of its own, and removes it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from fencepost.harness.package import PACKAGE
from tests.cluster import own
from tests.cluster.healed import healed

LOCK = PACKAGE / "harness" / "userlock" / "templates" / "mylock.py.in"
TESTS = """
import json
from pathlib import Path

import pytest
from mylock import MyLock

from fencepost.harness.cluster.provision import there


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_my_lock(fencepost, seed, worker_id):
    result = fencepost.run(
        MyLock, servers="redis:1", faults="partition,pause@1s", interval="1s", time="3s",
        concurrency=2, seed=seed,
    )
    Path(f"{seed}.json").write_text(json.dumps([worker_id, there(), result.verdict]))
    result.assert_valid("service")
"""


@pytest.mark.long
def test_each_worker_has_a_cluster_of_its_own_and_all_are_removed(tmp_path: Path) -> None:
    pytest.importorskip("xdist")
    assert healed()[0] == 0
    (tmp_path / "mylock.py").write_text(LOCK.read_text())
    (tmp_path / "test_mylock.py").write_text(TESTS)
    words = [sys.executable, "-m", "pytest", "-q", "-n", "2", "-p", "no:cacheprovider", "-rA"]
    done = subprocess.run(
        words,
        cwd=tmp_path,
        env=os.environ | {"FENCEPOST_RESULTS": str(tmp_path / "results")},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 passed" in done.stdout
    found = [json.loads((tmp_path / f"{seed}.json").read_text()) for seed in (1, 2, 3)]
    assert {worker for worker, *_ in found} == {"gw0", "gw1"}
    # The first test to end sees the other worker's cluster next to that of its own.
    assert any(len({*clusters} & own.clusters()) == 2 for _, clusters, _ in found), found
    runs = [json.loads(run.read_text()) for run in tmp_path.glob("results/MyLock/*Z/results.json")]
    assert len(runs) == 3
    assert all(fault["proved"] and fault["healed"] for run in runs for fault in run["faults"])
    assert own.used() == {} and own.nodes() == []
