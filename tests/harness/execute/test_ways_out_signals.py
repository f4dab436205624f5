"""After one signal or two the run is judged and healed, and leaves nothing."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from fencepost.harness.execute.scripted import of_suite
from fencepost.harness.judge import verdict
from fencepost.harness.remote.remote import RemoteError
from fencepost.nemesis.director import Director
from tests.harness.disturbed import (
    ENDING,
    FAULTY,
    PAUSED,
    assert_judged_and_put_away,
    carried_out,
    fresh,
    scenario,
    undisturbed_calls,
)

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("number", ENDING)
def test_a_signal_at_any_call_ends_in_a_judged_run(cluster, signals, number):
    interrupted = 0
    for call in undisturbed_calls(cluster):
        with fresh(call, lambda of: os.kill(os.getpid(), number)) as hit:
            ended = carried_out(hit)
            assert isinstance(ended.error, KeyboardInterrupt | None), call
            interrupted += "The run ended early" in ended.notes
            assert_judged_and_put_away(ended, hit)
    assert interrupted > 10


def test_a_second_signal_does_not_stop_the_cleanup(cluster, signals, capsys):
    at = {"SIGSTOP": signal.SIGTERM, "SIGCONT": signal.SIGHUP, "wait": signal.SIGINT}

    def disturb(call):
        number = at.pop(call.what or call.verb, None)
        if number is not None:
            os.kill(os.getpid(), number)

    cluster.before = disturb
    ended = carried_out(cluster, FAULTY)
    assert isinstance(ended.error, KeyboardInterrupt)
    assert at == {}
    assert_judged_and_put_away(ended, cluster)
    assert "cleaning up" in capsys.readouterr().out


@pytest.mark.parametrize("number", ENDING)
def test_a_second_signal_at_any_call_of_the_healing_is_as_the_first(cluster, signals, number):
    """The first one arrives while a server is stopped; from then on every call is disturbed."""
    interrupted = threading.Event()
    disturbed = []

    def before(call):
        if call.what == "SIGSTOP" and not interrupted.is_set():
            interrupted.set()
            os.kill(os.getpid(), signal.SIGINT)
        elif interrupted.is_set():
            disturbed.append(call)
            os.kill(os.getpid(), number)

    cluster.before = before
    ended = carried_out(cluster, FAULTY)
    assert isinstance(ended.error, KeyboardInterrupt)
    assert {"signal", "state", "wait", "get"} <= {call.verb for call in disturbed}
    assert "The run ended early: KeyboardInterrupt" in ended.notes
    assert_judged_and_put_away(ended, cluster)


@pytest.mark.parametrize("number", ENDING)
@pytest.mark.parametrize("interrupted", [False, True])
def test_a_signal_while_a_run_is_judged_counts_once_its_results_are_there(
    cluster, signals, monkeypatch, number, interrupted
):
    checking = verdict.check

    def disturbed(*asked):
        os.kill(os.getpid(), number)
        found = checking(*asked)
        os.kill(os.getpid(), number)
        return found

    def before(call):
        if interrupted and call.what == "SIGSTOP":
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(verdict, "check", disturbed)
    cluster.before = before
    ended = carried_out(cluster, FAULTY)
    assert isinstance(ended.error, KeyboardInterrupt)
    assert ended.results["checkers"]
    assert (ended.folder / "report.html").exists()
    assert cluster.left == []
    assert ended.results["valid"] == ("unknown" if interrupted else True)


def test_a_signal_just_before_the_healing_does_not_skip_it(cluster, monkeypatch):
    healing = Director.heal_all
    comes = [KeyboardInterrupt()]

    def heal_all(director):
        if comes:
            raise comes.pop()
        healing(director)

    monkeypatch.setattr(Director, "heal_all", heal_all)
    script = scenario(*PAUSED[:4])
    ended = carried_out(cluster, of_suite("short", "redis", script, 0), [], script)
    assert isinstance(ended.error, KeyboardInterrupt)
    assert_judged_and_put_away(ended, cluster)


def test_a_fault_that_cannot_be_healed_is_named(cluster, signals, capsys):
    def before(call):
        if (call.node, call.what) == ("redis-1", "SIGCONT"):
            raise RemoteError("redis-1 is dead")
        if (call.node, call.what) == ("redis-1", "SIGSTOP"):
            os.kill(os.getpid(), signal.SIGQUIT)

    cluster.before = before
    ended = carried_out(cluster, FAULTY)
    words = "redis-1 is paused (redis-1 is dead)"
    assert f"This could not be healed: {words}." in ended.notes
    assert f"fencepost: warning: this could not be healed: {words}" in capsys.readouterr().err
