"""Electors on nodes: those that work while the next one leads are found, sound ones not accused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytestmark = pytest.mark.cluster

SERVERS = ()  # each test adds those that it needs
ETCD = Path(__file__).parent / "electors.py"
# No pause of a server: a leader of etcd that was paused revokes leases which its successor has
# kept alive, when it continues (etcd 12528, 15247). A sound elector cannot notice that in time.
FAULTS = ("--faults", "partition,kill:one", "--interval", "4s", "--time", "30s", "--seed", "3")
# A busy machine starts servers slowly.
PATIENT = ("--liveness-bound", "60s")


@pytest.fixture
def tested(here, results):
    """Test an elector; return the exit code, the output, and results.json of the run."""

    def run(*words):
        code, said = here("test", *words)
        return code, said, json.loads((results / "latest" / "results.json").read_text())

    return run


def own(elector):
    return f"{ETCD}:{elector}", "--servers", "etcd:3"


def leadership(results):
    return results["checkers"]["leadership"]


def test_a_sound_elector_is_not_accused_under_faults_of_servers(tested):
    for time_s in ("30s", "120s"):  # on a busy machine a short run has few reigns
        sound = (*own("Sound"), *FAULTS, *PATIENT, "--guard", "fenced", "--time", time_s)
        code, said, results = tested(*sound)
        found = leadership(results)
        assert (found["valid"], found["overlap_total_s"]) == (True, 0), said
        if found["reigns"] > 2 and "resign" in found["take_over_s"]:
            break
    assert found["reigns"] > 2 and "resign" in found["take_over_s"], said
    assert code in (0, 2), said


@pytest.mark.long
def test_an_elector_that_never_stops_is_found(tested):
    faults = ("--faults", "partition,pause:server", *FAULTS[2:])
    for seed in ("3", "4", "5", "6"):  # not every schedule meets a leader
        code, said, results = tested(*own("NeverStops"), *faults, "--seed", seed)
        found = leadership(results)
        if found["valid"] is False:  # not only two leases at once, for a moment
            break
    assert (code, found["valid"]) == (1, False), said
    assert found["overlap_longest_s"] > 0.1


@pytest.mark.parametrize(
    "elector",
    [
        "kazoo-election",
        "curator-latch",
        *(
            pytest.param(name, marks=pytest.mark.long)
            for name in ("curator-selector", "postgres-leader", "tooz-leader")
        ),
    ],
)
def test_without_faults_candidates_lead_in_turn(tested, elector):
    code, said, results = tested(elector, "--time", "20s", "--seed", "1", *PATIENT)
    found = leadership(results)
    assert (code, found["valid"]) == (0, True), said
    assert found["reigns"] > 1, said


@pytest.mark.parametrize(
    "elector",
    [
        "redbeat-leader",
        *(
            pytest.param(name, marks=pytest.mark.long)
            for name in ("rq-leader", "apscheduler-leader")
        ),
    ],
)
def test_without_faults_schedulers_lead_in_turn_and_do_each_job_once(tested, elector):
    lease = () if elector == "rq-leader" else ("--ttl", "3s")
    work = ("--time", "20s", "--hold", "2s..4s", "--clients", "2", "--seed", "1")
    code, said, results = tested(elector, *lease, *work, *PATIENT)
    found, done = leadership(results), results["checkers"]["jobs"]
    assert (code, found["valid"], done["valid"]) == (0, True, True), said
    assert found["reigns"] > 1 and done["jobs"] > 5, said


def test_redbeat_sends_a_job_twice_after_a_pause_between_its_check_and_the_job(tested):
    faults = ("--faults", "pause:holder/before-send", "--aim", "--ttl", "3s", "--clients", "2")
    work = ("--time", "40s", "--hold", "30ttl..30ttl", "--seed", "1")
    code, said, results = tested("redbeat-leader", *faults, *work, *PATIENT)
    assert (code, leadership(results)["valid"]) == (1, False), said
    assert results["checkers"]["jobs"]["valid"] is False, said


@pytest.mark.long  # a part of `suite leaders`
def test_two_candidates_lead_behind_pgbouncer_without_any_fault(tested):
    code, said, results = tested("pgbouncer-leader", "--time", "15s", "--seed", "1")
    assert (code, leadership(results)["valid"]) == (1, False), said
    assert results["checkers"]["lease_exclusion"]["valid"] is False


def test_a_program_that_is_started_again_is_paused_and_killed_like_any(tested):
    faults = ("--faults", "pause:client,kill:client", "--interval", "4s", "--time", "30s")
    code, said, results = tested("curator-latch", *faults, "--seed", "2", *PATIENT)
    assert code in (0, 1), said  # a leader that is paused past its lease works on for a moment
    assert results["checkers"]["faults"]["valid"] is True, said
    assert {"pause", "kill"} <= {fault["family"] for fault in results["faults"]}
    assert leadership(results)["reigns"] > 2, said


def test_the_kubernetes_client_is_tested_on_a_model_of_the_api_that_keeps_its_objects(tested):
    faults = ("--faults", "kill:one", "--interval", "6s", "--time", "25s", "--seed", "2")
    code, said, results = tested("kubernetes-client", *faults, *PATIENT)
    assert code in (0, 2), said
    assert (leadership(results)["valid"], leadership(results)["reigns"] > 1) == (True, True), said
    killed = [one for one in results["faults"] if "kubernetes-1" in one["targets"]]
    assert killed and all(one["proved"] for one in killed)


@pytest.mark.long  # a part of `suite leaders`
def test_a_request_that_hangs_leaves_two_leaders_of_the_kubernetes_client_at_work(here):
    code, said = here("suite", "leaders", "--only", "kubernetes-request-hangs")
    assert code == 0 and "1 of 1 came out as published" in said, said


def test_the_beginning_of_a_reign_is_stamped_within_5_ms_by_the_clock_of_its_elector(
    tested, tmp_path
):
    """The token of this elector is the clock that it read as it called `started`."""
    work = ("--clients", "2", "--hold", "30ttl..30ttl", "--think", "0..20ms", "--contention", "all")
    code, said, results = tested(*own("ByTheClock"), *work, "--time", "20s", *PATIENT)
    assert code == 1 and leadership(results)["overlap_longest_s"] > 0.1, said
    [history] = tmp_path.glob("results/*/latest/history.jsonl")
    ops = [json.loads(line) for line in history.read_text().splitlines()]
    late_ns = [
        op["time"] - op["value"]["token"]
        for op in ops
        if (op["type"], op["f"]) == ("ok", "acquire")
    ]
    assert len(late_ns) > 10, said
    # The history begins at an unknown moment of that clock, the same for all clients.
    off_ms = sorted((one - min(late_ns)) / 1e6 for one in late_ns)
    print(f"stamps of {len(off_ms)} reigns: median {off_ms[len(off_ms) // 2]:.3f} ms after the")
    print(f"earliest, longest {off_ms[-1]:.3f} ms")
    assert off_ms[len(off_ms) // 2] <= 5  # a busy machine may keep a client from writing for longer


@pytest.mark.parametrize(("elector", "code"), [("Sound", 0), ("NeverStops", 1)])
def test_check_names_the_leader_that_is_not_told_to_stop(here, elector, code):
    got, said = here("check", *own(elector))
    assert got == code, said
    assert "a leader that cannot renew stops within its lease" in said


def test_an_elector_that_starts_twice_ends_the_test_with_a_sentence(here):
    code, said = here("test", *own("StartsTwice"), "--time", "5s")
    assert code == 255 and "started was called twice in one run" in said
