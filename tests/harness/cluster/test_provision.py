"""A cluster for a command or a call: started before, healed if kept, removed after."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from pathlib import Path

import pytest

import fencepost
from fencepost.harness import interrupts
from fencepost.harness.clients import streams
from fencepost.harness.cluster import docker_calls, projects
from fencepost.harness.cluster import provision as module
from fencepost.harness.cluster.network import NetworkLeft
from fencepost.harness.cluster.provision import Way, brought_up, reserved
from fencepost.harness.cluster.reservation import SETUP, Reservation
from fencepost.harness.command import app
from fencepost.harness.command import cluster as command
from fencepost.harness.errors import BadArguments, Crashed
from fencepost.harness.judge import judge as judging
from fencepost.harness.remote.remote import RemoteError
from fencepost.harness.servers.external_names import Foreign, Named
from tests.harness.memory import Cluster

NODES = ["redis-1", "storage", "client-1"]


@pytest.fixture
def engine(machine):
    """The cluster that a command takes if no other one runs."""
    return machine["fencepost"]


def test_nodes_are_up_within_the_block_and_removed_after_it(engine):
    said = []
    with brought_up(NODES, said.append) as cluster:
        assert cluster.nodes == NODES
    assert engine.nodes == []
    assert said == ["Bringing up 3 nodes"]


def test_compose_is_required_only_for_a_compose_file_and_before_anything_starts(
    engine, monkeypatch
):
    def none(say):
        raise Crashed("no Compose")

    monkeypatch.setattr(module.docker_engine, "compose", none)
    way = Way(foreign=Foreign((Named("r1", None),), Path("compose.yml")))
    with pytest.raises(Crashed, match="no Compose"), brought_up(["client-1"], print, way=way):
        pass
    assert (engine.nodes, engine.downs) == ([], 0)


@pytest.mark.parametrize("error", [RemoteError("gone"), KeyboardInterrupt(), SystemExit(3)])
def test_however_a_command_ends_the_nodes_are_removed(engine, error):
    with pytest.raises(type(error)), brought_up(NODES, print):
        raise error
    assert (engine.nodes, engine.downs) == ([], 1)


def test_nodes_of_an_incomplete_start_are_removed(engine):
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
        (module.docker_engine, "ensure", []),
        (module.image, "ensure", []),
        (module.image, "must_hold", []),
        (Cluster, "look", []),
        (Cluster, "up", []),
        # They cannot be removed while it hangs; `heal` does it then.
        (Cluster, "down", NODES),
    ],
)
def test_an_engine_that_hangs_at_any_call_leaves_nothing_or_leftovers_for_heal(
    engine, monkeypatch, capsys, where, name, left
):
    hung = docker_calls.Hung(f"docker {name} was not over within 60 s")

    def hangs(*_, **__):
        raise hung

    with monkeypatch.context() as once:
        once.setattr(where, name, hangs)
        with pytest.raises(docker_calls.Hung) as error, brought_up(NODES, print):
            pass
    assert error.value is hung
    assert engine.nodes == left
    monkeypatch.setattr(sys, "argv", ["fencepost", "heal"])
    assert app.run() == 0
    assert engine.nodes == []
    assert not left or f"Removed {len(left)} nodes" in capsys.readouterr().out


def test_a_second_signal_does_not_stop_the_removing(engine, monkeypatch, capsys):
    monkeypatch.setattr(
        Cluster, "down", lambda self: os.kill(os.getpid(), signal.SIGINT) or self._nodes.clear()
    )
    # A background process ignores Ctrl-C, and has no handler to restore.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt), brought_up(NODES, print):
            raise KeyboardInterrupt
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
    assert engine.nodes == []
    assert "cleaning up" in capsys.readouterr().out


def test_a_cluster_that_was_removed_is_no_longer_kept_whatever_remains_of_it(engine, monkeypatch):
    def left(self):
        self._nodes.clear()
        raise NetworkLeft("Docker keeps an endpoint")

    with brought_up(NODES, print, leave_up=True):
        pass
    monkeypatch.setattr(Cluster, "down", left)
    with pytest.raises(NetworkLeft):
        command.down()
    assert projects.kept_clusters() == []


def test_leftovers_of_an_earlier_run_are_removed_first(engine):
    engine.up(["redis-1", "redis-2"])
    said = []
    with brought_up(NODES, said.append) as cluster:
        assert cluster.nodes == NODES
    assert said[0] == "Removing what an earlier run left"


def test_kept_nodes_stay_and_the_next_command_heals_them(engine):
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
    with reserved(None, name="fencepost") as (_, reservation):
        reservation.set_keep(False)
    with brought_up(NODES, print):
        pass
    assert engine.nodes == []


def test_two_commands_at_once_have_a_cluster_each(machine):
    with brought_up(NODES, print) as one, brought_up(NODES, print) as other:
        assert one is machine["fencepost"] and other is machine["fencepost-2"]
        assert one.nodes == other.nodes == NODES
    assert [(one.ups, one.downs, one.nodes) for one in machine.clusters.values()] == [
        (1, 1, []),
        (1, 1, []),
    ]


def test_another_command_that_sets_up_is_waited_for_and_named(places):
    other, said = Reservation(SETUP), []
    other.take()

    def say(words):
        said.append(words)
        other.release()

    with projects.setting_up(say):
        pass
    (words,) = said
    assert words.startswith("Waiting for another command to set up the engine and the image. ")
    assert f"(pid {os.getpid()})" in words


def test_the_end_of_one_command_touches_nothing_of_another_s(machine):
    with brought_up(NODES, print) as one:
        with brought_up(NODES, print):
            one.calls.clear()
        assert (one.nodes, one.downs, one.calls) == (NODES, 0, [])


def test_a_cluster_that_is_kept_and_in_use_stays_that_command_s(machine):
    with brought_up(NODES, print, leave_up=True):
        pass
    with brought_up(NODES, print) as kept, brought_up(NODES, print) as fresh:
        assert kept is machine["fencepost"] and fresh is machine["fencepost-2"]
    assert machine["fencepost"].nodes == NODES
    assert machine["fencepost-2"].nodes == []
    assert projects.kept_clusters() == ["fencepost"]


def test_a_kept_cluster_is_used_first_whatever_its_name(machine):
    with brought_up(NODES, print), brought_up(NODES, print, leave_up=True):
        pass
    assert projects.kept_clusters() == ["fencepost-2"]
    with brought_up(NODES, print) as cluster:
        assert cluster is machine["fencepost-2"]


def test_the_next_command_removes_leftovers_of_unused_clusters(machine):
    machine["fencepost-3"].up(["redis-1"])
    said = []
    with reserved(None) as (living, _):
        living.up(NODES)
        machine["fencepost-2"].up(["redis-1"])
        with brought_up(NODES, said.append) as cluster:
            # The first unused cluster is the one that was left.
            assert cluster is machine["fencepost-2"] and cluster.nodes == NODES
            assert machine["fencepost-3"].nodes == []
            assert living.nodes == NODES
    assert said.count("Removing what an earlier run left") == 2


def test_where_all_clusters_are_in_use_nothing_is_started(machine):
    with contextlib.ExitStack() as others:
        for _ in projects.names():
            others.enter_context(reserved(None))
        with (
            pytest.raises(Crashed, match="all 16 clusters of this machine are in use"),
            brought_up(NODES, print),
        ):
            raise AssertionError("there is none")
    assert not any(cluster.ups for cluster in machine.clusters.values())


def test_a_command_takes_and_removes_only_clusters_that_its_environment_names(machine, monkeypatch):
    monkeypatch.setenv(projects.CLUSTERS, "3-4")
    for name in ("fencepost-2", "fencepost-4", "fencepost-5"):
        machine[name].up(["redis-1"])
    with brought_up(NODES, print) as cluster:
        assert cluster is machine["fencepost-3"]
        assert machine["fencepost-4"].nodes == []
        with (
            reserved(None),
            pytest.raises(Crashed, match="all 2 clusters that FENCEPOST_CLUSTERS names are in use"),
            reserved(None),
        ):
            raise AssertionError("there is none")
    assert machine["fencepost-2"].nodes == machine["fencepost-5"].nodes == ["redis-1"]


@pytest.mark.parametrize("given", ["3", "0-2", "5-4", "1-17", "1-٢", "1-2 "])
def test_clusters_that_are_no_range_are_refused(machine, monkeypatch, given):
    monkeypatch.setenv(projects.CLUSTERS, given)
    with (
        pytest.raises(BadArguments, match="is not a range of this machine's clusters: set it to"),
        brought_up(NODES, print),
    ):
        raise AssertionError("it is up")


def test_heal_leaves_a_running_command_s_cluster_alone_and_says_so(machine, monkeypatch, capsys):
    machine["fencepost-2"].up(["redis-1"])
    monkeypatch.setattr(sys, "argv", ["fencepost", "heal"])
    with reserved(None) as (running, _):
        running.up(NODES)
        running.calls.clear()
        assert app.run() == 0
        assert (running.nodes, running.downs, running.calls) == (NODES, 0, [])
    assert machine["fencepost-2"].nodes == []
    said = capsys.readouterr().out
    assert "Removed 1 nodes that a run had left." in said
    assert f"Skipped: Another fencepost command (pid {os.getpid()}) is using fencepost" in said


def test_cluster_down_does_not_remove_a_cluster_in_use(machine):
    with brought_up(NODES, print, leave_up=True):
        pass
    with brought_up(NODES, print) as kept:
        with pytest.raises(Crashed, match=f"pid {os.getpid()}"):
            command.down()
        assert kept.nodes == NODES
    command.down()
    assert (machine["fencepost"].nodes, projects.kept_clusters()) == ([], [])


def test_a_cluster_that_cannot_be_removed_does_not_keep_others_up(machine, monkeypatch):
    for name in ("fencepost", "fencepost-2", "fencepost-3"):
        machine[name].up(["redis-1"])
    stuck = machine["fencepost-2"]
    down = Cluster.down

    def fails(self):
        if self is stuck:
            raise Crashed("redis-1 cannot be removed")
        down(self)

    monkeypatch.setattr(Cluster, "down", fails)
    with pytest.raises(Crashed, match="redis-1 cannot be removed"):
        command.down()
    assert [one.nodes for one in machine.clusters.values()] == [[], ["redis-1"], []]


def test_engine_and_image_are_set_up_by_one_lane_of_a_command_at_a_time(machine, monkeypatch):
    inside, said = [], []

    def ensure(say):
        inside.append("in")
        time.sleep(0.05)
        assert inside.count("in") == inside.count("out") + 1
        inside.append("out")

    monkeypatch.setattr(module.docker_engine, "ensure", ensure)

    def use():
        with brought_up(NODES, said.append):
            pass

    threads = [threading.Thread(target=use) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert inside == ["in", "out"] * 3
    # They are no other command's.
    assert not any(words.startswith("Waiting") for words in said), said


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
    monkeypatch.setattr(streams, "_END_S", 0.05)
    monkeypatch.setattr(judging.report, "render", lambda run, *_: (run / "report.html").touch())


def test_a_test_called_from_python_starts_and_removes_its_cluster(engine, quick, tmp_path):
    told, faults = [], tmp_path / "faults.json"
    faults.write_text('[{"at_s": 0.1, "duration_s": 0.1, "fault": "pause:redis-1"}]')
    outcome = fencepost.run(
        "redis", options={"retries": 0}, schedule=faults, time=1, seed=7,
        ttl="2s", concurrency=2, hold="0..1ms", think="0..1ms", say=told.append,
    )  # fmt: skip
    assert outcome.valid is True, outcome.verdicts
    assert outcome.verdicts["faults"].summary == "The fault has its receipts, and was healed."
    assert outcome.folder.parent == tmp_path / "results" / "redis"
    assert (outcome.folder / "report.html").exists()
    assert (engine.ups, engine.nodes, engine.left) == (1, [], [])
    assert told[-1] == "Bringing up 4 nodes"
    assert fencepost.load(outcome.folder).results == outcome.results


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
def test_invalid_arguments_start_nothing(engine, quick, lock, settings, message):
    with pytest.raises(BadArguments) as error:
        fencepost.run(lock, **settings)
    assert str(error.value).startswith(message)
    assert engine.ups == 0
