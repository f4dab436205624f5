"""A session does several runs on one cluster and returns their results."""

from __future__ import annotations

import subprocess
import sys

import pytest

import fencepost
from fencepost.harness.errors import BadArguments
from fencepost.harness.remote.remote import RemoteError

pytestmark = pytest.mark.slow

QUICK = {"time": 1, "concurrency": 2, "options": {"retries": 0}}


@pytest.fixture
def session(machine, short):
    with fencepost.Session() as session:
        yield session


def test_runs_share_the_cluster_which_goes_down_with_the_session(session, machine):
    for seed in (1, 2):
        assert session.run("redis", seed=seed, **QUICK).valid
    cluster = machine["fencepost"]
    assert (cluster.ups, cluster.nodes != []) == (1, True)
    session.close()
    assert (cluster.downs, cluster.nodes, cluster.left) == (1, [], [])


def test_a_run_that_needs_more_nodes_restarts_the_cluster_with_the_union(session, machine):
    session.run("redis", **QUICK)
    session.run("redis", **QUICK | {"concurrency": 3})
    session.run("redis", **QUICK)
    cluster = machine["fencepost"]
    assert (cluster.ups, "client-3" in cluster.nodes) == (2, True)


def test_a_run_that_fails_leaves_the_session_s_cluster_to_be_removed(session, machine):
    cluster = machine["fencepost"]
    session.run("redis", **QUICK)

    def before(call):
        if call.verb == "spawn":
            raise RemoteError("client-1 does not answer")

    cluster.before = before
    with pytest.raises(RemoteError):
        session.run("redis", **QUICK)
    session.close()
    assert cluster.nodes == []


def test_settings_have_the_names_of_the_command_line_and_faults_is_one(session):
    result = session.run("redis", faults=["pause:server@200ms"], **QUICK | {"time": 2})
    assert result.results["faults"]
    with pytest.raises(BadArguments, match="there is no setting 'fault'; choose one of: nemesis"):
        session.run("redis", fault="pause", **QUICK)


def test_a_valid_run_passes_the_assertion_and_returns_its_verdict(session):
    result = session.run("redis", seed=7, **QUICK)
    result.assert_valid()
    result.assert_valid("service", "lease_exclusion")
    assert (result.valid, result.verdict, result.seed) == (True, True, 7)
    assert result.report.name == "report.html" and result.evidence == []
    assert repr(result).startswith("<Valid: the lock service kept its promise")


def test_a_broken_lock_fails_with_the_sentence_the_evidence_the_seed_and_the_report(
    session, machine
):
    session.run("redis", **QUICK)
    machine["fencepost"].service.broken = True
    result = session.run("redis", seed=7, **QUICK)
    assert (result.valid, result.verdict) == (False, False)
    with pytest.raises(AssertionError) as error:
        result.assert_valid("service")
    said = str(error.value)
    assert said.startswith("redis is INVALID on service.\nInvalid: the lock service broke its prom")
    assert "lease_exclusion: client-" in said
    assert f"seed 7, report: {result.report}" in said
    assert f"fencepost test --replay {result.folder}" in said


def test_an_unknown_verdict_is_not_valid(session, machine, monkeypatch):
    monkeypatch.setattr(machine["fencepost"], "deaf", {"redis-1"})
    result = session.run("redis", faults="pause:server@200ms", **QUICK | {"time": 2})
    assert (result.valid, result.verdict) == (False, "unknown")
    with pytest.raises(AssertionError, match="redis is unknown"):
        result.assert_valid()


def test_an_unjudged_run_cannot_be_asserted(session):
    result = session.run("redis", **QUICK)
    with pytest.raises(BadArguments, match="fail-on fencing: this test does not run it"):
        result.assert_valid("fencing")


def test_a_run_gives_its_ops_holds_and_faults_as_data_frames(session):
    result = session.run("redis", faults="pause:server@200ms", **QUICK | {"time": 2})
    ops, holds, faults, _ = fencepost.load(result.folder).to_pandas()
    assert len(ops) > len(holds) == result.results["stats"]["holds"]
    assert set(faults["family"]) == {"pause"} and faults["proved"].all()
    assert (faults["end_s"] > faults["start_s"]).all()


def test_a_run_that_was_never_judged_has_a_verdict_with_the_reason(session):
    folder = session.run("redis", **QUICK).folder
    (folder / "results.json").unlink()
    with pytest.raises(BadArguments, match=r"run `fencepost analyze .*`"):
        fencepost.load(folder)


def test_importing_the_api_loads_no_slow_module():
    loads = "import sys, fencepost; print(*sys.modules)"
    found = subprocess.run(
        [sys.executable, "-c", loads], capture_output=True, text=True, check=True
    ).stdout.split()
    ours = [name for name in found if name.startswith("fencepost.")]
    assert ours == ["fencepost.moved"]
    assert not {"docker", "typer", "rich", "pandas", "msgspec", "paramiko"} & set(found)
