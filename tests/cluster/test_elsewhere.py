"""Dask's workers execute real runs; all of them use this machine's engine."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from fencepost.report.pages import matrix as matrix_page
from fencepost.report.pages import suite as suite_page
from tests.cluster import own
from tests.cluster.healed import healed
from tests.dasked import dasked, needs_dask

pytestmark = [needs_dask, pytest.mark.long]

FENCEPOST = [sys.executable, "-m", "fencepost"]
SUITE = ("suite", "redis", "--only", "control", "--only", "evicted", "--seed", "5")
MATRIX = ("matrix", "--locks", "redis", "--faults", "none,pause:client@500ms", "--guards", "none",
          "--time", "3s", "--seed", "5")  # fmt: skip


@pytest.fixture(scope="module")
def dask(tmp_path_factory):
    with dasked(tmp_path_factory.mktemp("dask")) as made:
        made.ready()
        yield made
    # A run whose worker was killed ends by itself.
    end = time.monotonic() + 240
    while own.nodes() and time.monotonic() < end:
        time.sleep(0.2)
    assert healed()[0] == 0


@pytest.fixture
def started(dask, tmp_path):
    """Run a command whose runs go to the workers."""
    env = os.environ | {"FENCEPOST_RESULTS": str(tmp_path / "results")}
    where = ("--engine", "dask", "--scheduler", dask.address)
    begun = []

    def start(*words):
        begun.append(
            subprocess.Popen(
                [*FENCEPOST, *words, *where], env=env, text=True,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            )
        )  # fmt: skip
        return begun[-1]

    yield start
    for process in begun:
        process.kill()
        process.wait()


def test_a_matrix_has_a_cell_a_worker(started, tmp_path):
    matrix = started(*MATRIX)
    said, _ = matrix.communicate(timeout=600)
    assert matrix.returncode == 0, said
    assert "2 at a time" in said
    (folder,) = (tmp_path / "results" / "matrix").glob("2*")
    cells = matrix_page.read(folder)["cells"]
    assert [len(cell["runs"]) for cell in cells] == [1, 1]
    for cell in cells:
        assert (folder / cell["runs"][0]["run"] / "report.html").exists()


# The last test: it kills a worker.
def test_a_suite_has_the_published_outcome_though_a_worker_is_killed(dask, started, tmp_path):
    suite = started(*SUITE)
    end = time.monotonic() + 240
    while len(own.used()) < 2:
        assert suite.poll() is None and time.monotonic() < end
        time.sleep(0.1)
    dask.workers[0].send_signal(signal.SIGKILL)
    said, _ = suite.communicate(timeout=600)
    assert suite.returncode == 0, said
    assert "Runs go to 2 workers of tcp://" in said
    (folder,) = (tmp_path / "results" / "suite-redis").glob("2*")
    rows = suite_page.read(folder)
    assert len(rows) >= 3 and all(row["as_expected"] for row in rows)
    for row in rows:
        run = folder / row["run"]
        assert json.loads((run / "results.json").read_text())["test"] == row["test"]
        assert (run / "report.html").exists() and (run / "history.jsonl").stat().st_size > 1000
