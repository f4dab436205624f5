"""`fencepost hunt --confirm` and `fencepost test --schedule`, on a cluster in memory.

A simulated Redis server forgets a grant. Servers in memory keep their grants unless they are
broken, so only broken ones confirm the counterexample.
"""

from __future__ import annotations

import json
import sys

import pytest

import fencepost
from fencepost.checker.history import history
from fencepost.harness.command import app
from fencepost.harness.errors import Crashed
from fencepost.hunt.bridge import bridge

pytestmark = pytest.mark.slow


@pytest.fixture
def service(machine):
    return machine["fencepost"].service


@pytest.fixture
def command(machine, monkeypatch, capsys, tmp_path):
    """Run the command line; return its exit code and its output."""
    monkeypatch.setenv("FENCEPOST_RESULTS", str(tmp_path))
    monkeypatch.setattr(bridge, "TTL_MS", 2000)

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["fencepost", *map(str, arguments)])
        code = app.run()
        said = capsys.readouterr()
        return code, said.out + said.err

    return call


HUNT = ("hunt", "redis", "--faults", "kill", "--seed", "1", "--processes", "1")


def test_a_confirmed_counterexample_exits_with_1_and_a_sentence(command, service, tmp_path):
    service.broken = True
    code, said = command(*HUNT, "--confirm")
    assert code == 1
    assert "Replaying on real servers: 1 redis, 2 clients, a lease of 2 s" in said
    sentence = (
        "Confirmed on real servers, try 1 of up to 3: lease_exclusion is violated there, too."
    )
    assert said.rstrip().endswith(sentence)
    (played,) = tmp_path.glob("confirm-redis/*Z/nodes")
    ops = history.read(played.parent / "history.jsonl")
    # client-2 was stopped during its op until the server was up again.
    faults = [
        (op.f, op.value["phase"]) for op in ops if op.process == "nemesis" and op.type == "ok"
    ]
    assert faults == [("pause", "start"), ("kill", "start"), ("kill", "end"), ("pause", "end")]


def test_an_unconfirmed_counterexample_exits_with_2_and_the_difference(command):
    code, said = command(*HUNT, "--confirm")
    assert code == 2
    assert said.count("Try ") == 3
    last = said.rstrip().splitlines()[-1]
    assert last.startswith("Not confirmed in 3 tries. The difference: ")
    assert "it completed as fail, but the schedule has ok" in last


def test_a_try_that_crashes_is_repeated_on_a_new_cluster(command, machine, service):
    service.broken = True
    crashes = [Crashed("client-1 did not come up")]

    def before(call):
        if call.verb == "spawn" and crashes:
            raise crashes.pop()

    machine["fencepost"].before = before
    code, said = command(*HUNT, "--confirm")
    assert code == 1 and "Try 1 of up to 3: client-1 did not come up" in said
    assert "Confirmed on real servers, try 2 of up to 3" in said
    assert machine["fencepost"].ups == 2 and machine["fencepost"].left == []


def test_test_runs_the_schedule_file_of_a_hunt(command, service, tmp_path):
    assert command(*HUNT)[0] == 1
    (schedule,) = tmp_path.glob("hunt-redis/*Z/schedule.json")
    service.broken = True
    code, said = command("test", "redis", "--schedule", schedule)
    assert code == 1
    assert "lease_exclusion   INVALID" in said


@pytest.mark.parametrize("broken", [True, False])
def test_a_session_confirms_counterexamples_on_its_own_cluster(
    machine, service, monkeypatch, tmp_path, broken
):
    monkeypatch.setenv("FENCEPOST_RESULTS", str(tmp_path))
    monkeypatch.setattr(bridge, "TTL_MS", 2000)
    service.broken = broken
    with fencepost.Session() as session:
        found = session.hunt("redis", faults="kill", seed=1, processes=1, confirm=True)
    assert machine["fencepost"].ups == 1
    assert found.found and found.confirmed is broken
    tries = 1 if broken else 3
    assert len(list(tmp_path.glob("confirm-redis/*Z/nodes"))) == tries
    said = "Confirmed on real servers, try 1" if broken else "Not confirmed in 3 tries."
    assert said in found.explain()
    assert found.command.endswith("--confirm")


def test_without_a_counterexample_no_cluster_starts(machine, monkeypatch, tmp_path):
    monkeypatch.setenv("FENCEPOST_RESULTS", str(tmp_path))
    with fencepost.Session() as session:
        found = session.hunt(
            "redis", faults="partition", budget="300ms", seed=1, processes=1, confirm=True
        )
    assert found.valid and found.confirmation is None and not found.confirmed
    assert machine["fencepost"].ups == 0


@pytest.mark.parametrize(
    ("change", "given", "said"),
    [
        ({"lock": "redis9"}, (), "there is no lock 'redis9'"),
        ({"steps": [{"do": "heal", "name": "jump"}]}, (), "no fault 'jump' has begun"),
        (
            {"steps": [{"do": "do", "client": "client-7", "f": "acquire"}]},
            (),
            "no client 'client-7'",
        ),
        ({"settings": {"time": "9s"}}, (), "there is no setting 'time'"),
        (
            {},
            ("--ttl", "3s"),
            "--schedule takes all settings from the scenario that it names: omit ttl",
        ),
        ({}, ("-o", "colour=red"), "colour"),
    ],
)
def test_a_scenario_that_servers_cannot_run_is_refused(command, tmp_path, change, given, said):
    sound = {
        "scenario": 1, "name": "n", "lock": "redis", "guard": "none", "ttl_ms": 1000,
        "clients": 2, "steps": [{"do": "do", "client": "client-1", "f": "acquire"}],
    }  # fmt: skip
    path = tmp_path / "schedule.json"
    path.write_text(json.dumps(sound | change))
    lock = (sound | change)["lock"]
    code, words = command("test", lock, "--schedule", path, *given)
    assert code == 254
    assert said in words
