"""`fencepost sweep` on a cluster in memory: its maps, its page and its exit codes."""

from __future__ import annotations

import sys

import pytest

from fencepost.harness.campaigns import sweep as sweeps
from fencepost.harness.command import app
from fencepost.harness.results import finder, results
from fencepost.report.pages import sweep as page

pytestmark = pytest.mark.slow

ASKED = ("redis", "--x", "ttl=0.3s..0.9s", "--y", "pause=0.2s..0.6s", "--steps", "2x2")


@pytest.fixture
def sweep(machine, short, capsys, monkeypatch):
    """Run the command with short runs of one fault; return its exit code and output."""
    for name, value in (("FAULTS", 1), ("_BEFORE_S", 0.1), ("_BETWEEN_S", 0.2)):
        monkeypatch.setattr(sweeps, name, value)

    def call(*words):
        monkeypatch.setattr(sys, "argv", ["fencepost", "sweep", *words])
        code = app.run()
        said = capsys.readouterr()
        return code, said.out + said.err

    return call


def stored():
    return page.read(finder.find("latest", "sweep"))


def test_each_cell_is_run_on_one_cluster_under_its_own_fault(sweep, machine):
    code, said = sweep(*ASKED, "--seed", "7")
    assert code == 0 and machine["fencepost"].ups == 1 and machine["fencepost"].left == []
    assert "redis: 4 cells, 2 values of TTL by 2 of pause; seed 7" in said
    assert f"page: {finder.find('latest', 'sweep') / 'report.html'}" in said
    for row in stored()["cells"]:
        (run,) = row["runs"]
        test = results.read_test(finder.find("latest", "sweep") / run["run"])
        (fault,) = test["schedule"]
        assert (test["ttl_ms"], fault["duration_s"]) == (round(1000 * row["x"]), row["y"])
        assert run["faults"] == 1 and run["holds"] > 0
        assert test["scheduled"] and test["seed"] == run["seed"]


def test_an_interrupted_sweep_resumes(sweep, machine):
    def before(call):
        if call.verb == "spawn" and len(list(results.root().glob("sweep-redis/*Z"))) == 2:
            raise KeyboardInterrupt

    machine["fencepost"].before = before
    code, said = sweep(*ASKED, "--seed", "7")
    assert code == 130 and "page: " in said
    machine["fencepost"].before = lambda call: None
    code, _ = sweep("--resume", "latest")
    assert code == 0
    assert [row["sum"]["runs"] for row in stored()["cells"]] == [1, 1, 1, 1]


def test_a_budget_that_is_too_short_leaves_cells_and_says_how_to_resume(sweep):
    code, said = sweep(*ASKED, "--budget", "1s", "--runs", "1")
    assert code == 0 and "Nothing was run yet." in said
    assert f"fencepost sweep --resume {finder.find('latest', 'sweep').name}" in said


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "a sweep needs LOCK"),
        (["redis"], "a sweep needs --x"),
        (["redis", "--x", "ttl=1s..2s"], "a sweep needs --y"),
        (["redlok", *ASKED[1:]], "there is no lock 'redlok'"),
        ([*ASKED, "--guard", "high"], "guard 'high'"),
        ([*ASKED, "-o", "luck=1"], "luck"),
        ([*ASKED, "--budget", "0"], "budget '0' is not a duration"),
        (["--resume", "nowhere"], "'nowhere' is not a sweep (the path of a folder, or"),
        (["redis", "--resume", "x"], "LOCK cannot be combined with --resume"),
    ],
)
def test_bad_arguments_exit_with_254_and_the_valid_values(sweep, machine, words, message):
    code, said = sweep(*words)
    assert code == 254 and message in " ".join(said.split())
    assert machine.clusters == {}
