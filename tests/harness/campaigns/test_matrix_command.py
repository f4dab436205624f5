"""`fencepost matrix` on a cluster in memory: its table, its page and its exit codes."""

from __future__ import annotations

import csv
import sys

import pytest

from fencepost.harness.campaigns import matrix as matrices
from fencepost.harness.campaigns.executors import Clusters
from fencepost.harness.command import app
from fencepost.harness.command import matrix as command
from fencepost.harness.command.campaign import leader_table
from fencepost.harness.results import finder
from fencepost.report.exports import frames
from fencepost.report.pages import matrix as page
from tests.report.matrices import stored
from tests.report.pages.test_matrix import ELECTORS

pytestmark = pytest.mark.slow

NAMED = ("--locks", "redis", "--faults", "none,pause:server@200ms", "--guards", "none")


@pytest.fixture
def matrix(machine, short, capsys, monkeypatch):
    """Run the command with short runs; return its exit code and output."""
    monkeypatch.setattr(matrices, "_QUICK_TTL_MS", 200)
    monkeypatch.setattr(matrices, "_TTL_MS", 200)

    def call(*words):
        monkeypatch.setattr(sys, "argv", ["fencepost", "matrix", *words])
        code = app.run()
        said = capsys.readouterr()
        return code, said.out + said.err

    return call


def made():
    return finder.find("latest", "matrix")


def sums():
    rows = page.read(made())["cells"]
    return {(row["lock"], row["fault"]): row["sum"] for row in rows}


def test_a_sound_lock_is_kept_in_every_cell_on_one_cluster(matrix, machine):
    code, said = matrix(*NAMED, "--time", "2s", "--seed", "7")
    assert code == 0 and machine["fencepost"].ups == 1 and machine["fencepost"].left == []
    assert {total["state"] for total in sums().values()} == {"kept"}
    assert "2 cells: 1 lock, 2 faults, 1 guard; 2 s each, seed 7" in said
    assert "redis, no fault, guard none: kept  No violation was seen in" in said
    assert f"page: {made() / 'report.html'}" in said
    found = sums()["redis", "pause:server@200ms"]
    assert found["holds"] > 0 and found["availability"] > 0
    assert found["checkers"]["faults"] == {"worst": True, "true": 1, "false": 0, "unknown": 0}
    assert 0 < found["longest_calm_s"] <= found["longest_s"]
    assert len(list(csv.DictReader((made() / "matrix.csv").open()))) == 2


def test_a_broken_lock_is_listed_with_the_rate_and_time_of_its_violations(matrix, machine):
    machine["fencepost"].service.broken = True
    code, _ = matrix("--locks", "redis", "--faults", "none", "--guards", "none", "--time", "1s")
    total = sums()["redis", "none"]
    assert code == 0 and total["state"] == "broken"
    service = total["violations"]["service"]
    assert 0 < service["count"] <= total["holds"] and service["runs"] == 1
    assert 0 <= service["first_s"] < 2 and service["low"] < service["per_1000"] <= service["high"]


def test_a_matrix_of_electors_prints_their_overlaps_and_take_overs(matrix):
    words = ("--locks", "kubernetes-client,redis", "--faults", "none", "--guards", "none")
    code, said = matrix(*words, "--time", "1s", "--seed", "3")
    led = sums()["kubernetes-client", "none"]["leaders"]
    assert code == 0 and led["overlaps"]["of"] == led["changes"]
    assert sums()["redis", "none"]["leaders"] is None
    assert "Leaders: median (95 %), longest, and of how many" in said


def test_the_table_of_leaders_has_each_cause_of_a_take_over(capsys):
    cells = page.with_sums(ELECTORS)
    shown = page.contents("now", stored(*ELECTORS), cells)
    leader_table(shown["leaders"])
    said = capsys.readouterr().out
    assert "4.80 s" in said and "cut: 2.50 s" in said and "2 of 8" in said


def test_an_interrupted_matrix_resumes(matrix, machine):
    def before(call):
        if call.verb == "spawn" and len(list(made().parent.parent.glob("matrix-redis/*Z"))) == 2:
            raise KeyboardInterrupt

    machine["fencepost"].before = before
    code, said = matrix(*NAMED, "--time", "2s", "--seed", "7")
    assert code == 130 and "page: " in said
    assert sorted(total["runs"] for total in sums().values()) == [0, 1]
    assert (made() / "report.html").is_file()
    machine["fencepost"].before = lambda call: None
    name = made().name
    code, _ = matrix("--resume", name)
    assert code == 0 and made().name == name
    assert [total["runs"] for total in sums().values()] == [1, 1]


def test_two_cells_at_a_time_run_on_two_clusters_which_both_go_down(matrix, machine, monkeypatch):
    monkeypatch.setattr(Clusters, "up_s", 1)  # or four cells were not worth a second one
    words = ["--locks", "redis", "--faults", "none,pause:server@200ms,kill,partition"]
    code, said = matrix(
        *words, "--guards", "none", "--time", "2s", "--seed", "7", "--parallel", "2"
    )
    assert code == 0 and "2 at a time, seed 7" in said
    assert [total["runs"] for total in sums().values()] == [1, 1, 1, 1]
    assert sorted(machine.clusters) == ["fencepost", "fencepost-2"]
    for cluster in machine.clusters.values():
        assert (cluster.ups, cluster.nodes, cluster.left) == (1, [], [])


def test_inapplicable_arguments_are_reported_before_anything_starts(matrix):
    words = ["--locks", "redis,redis-py", "--faults", "none", "--guards", "none,fenced"]
    code, said = matrix(*words, "--time", "1s")
    reason = "guard fenced needs a fencing token, and redis-py gives none with these options"
    assert code == 0
    assert said.index(f"not tested: redis-py no fault: {reason}") < said.index("Bringing up")


def test_parquet_is_refused_before_anything_starts_where_nothing_can_write_it(
    matrix, machine, monkeypatch, tmp_path
):
    monkeypatch.setattr(command, "find_spec", lambda name: None)
    code, said = matrix(*NAMED, "--parquet", str(tmp_path / "matrix.parquet"))
    assert code == 254 and "--parquet needs pandas and pyarrow: pip install" in said
    assert machine.clusters == {}


def test_the_table_is_written_as_parquet_where_that_is_asked_for(matrix, monkeypatch, tmp_path):
    matrix("--locks", "redis", "--faults", "none", "--guards", "none", "--time", "1s")
    monkeypatch.setattr(command, "find_spec", lambda name: name)
    written = []
    # pandas itself writes it, and is not installed here.
    monkeypatch.setattr(
        frames.pd.DataFrame, "to_parquet", lambda frame, file: written.append((len(frame), file))
    )
    code, _ = matrix("--resume", "latest", "--parquet", str(tmp_path / "matrix.parquet"))
    assert code == 0 and written == [(1, tmp_path / "matrix.parquet")]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--locks", "redlok"], "there is no lock 'redlok'; choose one of: redlock, "),
        (["--faults", "flood"], "there is no fault 'flood'; choose one of: none, all, partition"),
        (["--guards", "high"], "there is no guard 'high'; choose one of: none, deadline"),
        (["--budget", "0"], "budget '0' is not a duration"),
        (["--time", "soon"], "time 'soon' is not a duration"),
        (["--seed", "lucky"], "seed 'lucky' is not an integer"),
        (["--resume", "nowhere"], "'nowhere' is not a matrix (the path of a folder, or"),
        (
            ["--resume", "x", "--locks", "redis"],
            "--locks cannot be combined with --resume",
        ),
        (["--resume", "x", "--quick"], "--quick cannot be combined with --resume"),
    ],
)
def test_bad_arguments_exit_with_254_and_the_valid_values(matrix, machine, words, message):
    code, said = matrix(*words)
    assert code == 254 and message in said
    assert machine.clusters == {}
