"""A cluster for the length of a command or a call: up before, healed if it was kept, down after."""

from __future__ import annotations

import os
import signal
import sys

import pytest

import fencepost
from fencepost.harness import interrupts
from fencepost.harness.cluster import asking
from fencepost.harness.cluster import brought_up as module
from fencepost.harness.cluster.brought_up import brought_up, reserved
from fencepost.harness.cluster.network import NetworkLeft
from fencepost.harness.command import app
from fencepost.harness.command import cluster as command
from fencepost.harness.errors import BadArguments, Crashed
from fencepost.harness.remote.remote import RemoteError
from fencepost.harness.run import judge, worker
from harness.memory import Cluster

NODES = ["redis-1", "storage", "client-1"]


@pytest.fixture
def engine(monkeypatch):
    """An engine in memory: its one cluster, whichever command looks at it."""
    cluster = Cluster()
    monkeypatch.setattr(module.engine, "ensure", lambda say: None)
    monkeypatch.setattr(module.image, "ensure", lambda say: "image")
    monkeypatch.setattr(module.image, "must_hold", lambda name, libraries: None)
    monkeypatch.setattr(module, "ComposeCluster", lambda engine, doors, mounts: cluster)
    return cluster


def test_nodes_are_up_inside_and_gone_after(engine):
    said = []
    with brought_up(NODES, said.append) as cluster:
        assert cluster.nodes == NODES
    assert engine.nodes == []
    assert said == ["Bringing up 3 nodes"]


@pytest.mark.parametrize("error", [RemoteError("gone"), KeyboardInterrupt(), SystemExit(3)])
def test_whatever_ends_it_the_nodes_are_removed(engine, error):
    with pytest.raises(type(error)), brought_up(NODES, print):
        raise error
    assert (engine.nodes, engine.downs) == ([], 1)


def test_nodes_that_came_up_halfway_are_removed(engine):
    def before(call):
        if call.node == "storage":
            raise Crashed("no room for storage")

    engine.before = before
    with pytest.raises(Crashed, match="no room"), brought_up(NODES, print):
        raise AssertionError("it is not up")
    assert (engine.nodes, engine.downs) == ([], 1)


@pytest.mark.parametrize(
    ("where", "name", "left"),
    [
        (module.engine, "ensure", []),
        (module.image, "ensure", []),
        (module.image, "must_hold", []),
        (Cluster, "look", []),
        (Cluster, "up", []),
        # Nobody can remove them while it hangs; `heal` does it then.
        (Cluster, "down", NODES),
    ],
)
def test_an_engine_that_hangs_at_any_of_its_calls_leaves_nothing_or_what_heal_removes(
    engine, monkeypatch, capsys, where, name, left
):
    hung = asking.Hung(f"docker {name} was not over within 60 s")

    def hangs(*_, **__):
        raise hung

    with monkeypatch.context() as once:
        once.setattr(where, name, hangs)
        with pytest.raises(asking.Hung) as error, brought_up(NODES, print):
            pass
    assert error.value is hung
    assert engine.nodes == left
    monkeypatch.setattr(module.engine, "find", lambda: None)
    monkeypatch.setattr(sys, "argv", ["fencepost", "heal"])
    assert app.run() == 0
    assert engine.nodes == []
    assert not left or f"Removed {len(left)} nodes" in capsys.readouterr().out


def test_a_second_signal_does_not_stop_the_removing(engine, monkeypatch, capsys):
    monkeypatch.setattr(
        Cluster, "down", lambda self: os.kill(os.getpid(), signal.SIGINT) or self._nodes.clear()
    )
    # What is started in the background has Ctrl-C ignored, and would have no handler to give back.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt), brought_up(NODES, print):
            raise KeyboardInterrupt
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
    assert engine.nodes == []
    assert "cleaning up" in capsys.readouterr().out


def test_a_cluster_that_was_taken_down_is_kept_no_longer_whatever_is_left_of_it(
    engine, monkeypatch
):
    def left(self):
        self._nodes.clear()
        raise NetworkLeft("Docker keeps an endpoint")

    with brought_up(NODES, print, leave_up=True):
        pass
    monkeypatch.setattr(module.engine, "find", lambda: None)
    monkeypatch.setattr(Cluster, "down", left)
    with pytest.raises(NetworkLeft):
        command.down()
    with reserved(None) as (_, reservation):
        assert reservation.keep is False


def test_what_an_earlier_run_left_is_removed_first(engine):
    engine.up(["redis-1", "redis-2"])
    said = []
    with brought_up(NODES, said.append) as cluster:
        assert cluster.nodes == NODES
    assert said[0] == "Removing what an earlier run left behind"


def test_nodes_that_are_to_stay_stay_and_the_next_command_heals_them(engine):
    with brought_up(NODES, print, leave_up=True):
        pass
    assert engine.nodes == NODES
    node = engine.remote("redis-1")
    (pid,) = node.processes
    node.signal(pid, signal.SIGSTOP)
    said = []
    with brought_up(NODES, said.append):
        assert node.processes[pid] == "S"
    assert engine.nodes == NODES
    assert said[0] == f"Healed: redis-1: resumed its stopped server (pid {pid})"
    with reserved(module.engine.ensure(print)) as (_, reservation):
        reservation.set_keep(False)
    with brought_up(NODES, print):
        pass
    assert engine.nodes == []


def test_one_command_at_a_time_has_the_cluster(engine):
    with (
        brought_up(NODES, print),
        pytest.raises(Crashed, match=f"pid {os.getpid()}"),
        brought_up(NODES, print),
    ):
        raise AssertionError("both have it")
    assert engine.nodes == []


def test_a_signal_that_is_ignored_stays_ignored_and_others_interrupt():
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
    before = {number: signal.getsignal(number) for number in numbers}
    try:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        interrupts.interrupt_on_signals()
        os.kill(os.getpid(), signal.SIGHUP)
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGTERM)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@pytest.fixture
def quick(monkeypatch, tmp_path):
    monkeypatch.setenv("FENCEPOST_RESULTS", str(tmp_path / "results"))
    monkeypatch.setattr(worker, "_END_S", 0.05)
    monkeypatch.setattr(judge.report, "render", lambda run, *_: (run / "report.html").touch())


def test_a_test_called_from_python_brings_its_cluster_up_and_down(engine, quick, tmp_path):
    told, faults = [], tmp_path / "faults.json"
    faults.write_text('[{"at_s": 0.1, "duration_s": 0.1, "fault": "pause:redis-1"}]')
    outcome = fencepost.run(
        "redis", options={"retries": 0}, schedule=faults, time=1, seed=7,
        ttl="100ms", concurrency=2, work={"think_ms": 1, "pause_ms": 1}, say=told.append,
    )  # fmt: skip
    assert outcome.valid is True, outcome.verdicts
    assert (
        outcome.verdicts["faults"].summary == "All 1 faults have their receipts, and were healed."
    )
    assert outcome.folder.parent == tmp_path / "results" / "redis"
    assert (outcome.folder / "report.html").exists()
    assert (engine.ups, engine.nodes, engine.left) == (1, [], [])
    assert told[-1] == "Bringing up 4 nodes"


@pytest.mark.parametrize(
    ("lock", "settings", "message"),
    [
        ("redlok", {}, "there is no lock 'redlok'"),
        ("redis", {"options": {"retrys": 1}}, "lock redis has no option retrys"),
        ("redis", {"ttl": "50ms"}, "TTL 50 ms is out of range"),
        ("redis", {"remote": "telnet"}, "there is no remote 'telnet'"),
        ("redis", {"schedule": "/no/such"}, "schedule /no/such cannot be read"),
    ],
)
def test_what_makes_no_sense_starts_nothing(engine, quick, lock, settings, message):
    with pytest.raises(BadArguments) as error:
        fencepost.run(lock, **settings)
    assert str(error.value).startswith(message)
    assert engine.ups == 0
