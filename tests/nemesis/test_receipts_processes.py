"""The receipt of a pause or a kill names each process that it hit, and no other."""

from __future__ import annotations

import pytest

from fencepost.nemesis.nemesis import Fault, Receipt
from tests.nemesis.receipt_faults import (
    CRASHES,
    KILL_CLIENT,
    KILL_SERVER,
    PAUSE_CLIENT,
    PAUSE_SERVER,
)


def test_a_stopped_client_s_receipt_names_its_state_and_its_process(director):
    receipt = director.inject(PAUSE_CLIENT)
    assert receipt.data == {"pid": 105, "state": "T", "process": 5, "at": "wherever it was"}


@pytest.fixture
def succeeded(site, monkeypatch):
    """Let the process of client-1 end before a signal reaches it, and another one follow."""
    node = site.nodes["client-1"]
    signal = node.signal

    def signalled(pid, number, started=None):
        if pid != 105:
            return signal(pid, number, started)
        node.states = {205: "S"}
        node.pid_ = 205
        return False

    monkeypatch.setattr(node, "signal", signalled)
    return node


def test_a_process_that_ends_when_it_is_to_be_stopped_is_followed_by_one_that_is_stopped(
    director, succeeded
):
    receipt = director.inject(PAUSE_CLIENT)
    assert receipt.proved
    assert (receipt.data["pid"], receipt.data["state"]) == (205, "T")


def test_a_process_that_ended_and_has_no_successor_was_not_stopped(director, site):
    site.nodes["client-1"].states.clear()
    receipt = director.inject(PAUSE_CLIENT)
    assert not receipt.proved
    assert "pid 105 on client-1 is in state None" in receipt.how


def test_a_process_that_ends_as_soon_as_it_is_resumed_is_no_longer_stopped(director, site):
    assert director.inject(PAUSE_CLIENT).proved
    site.nodes["client-1"].states.clear()
    receipt = director.heal(PAUSE_CLIENT.name)
    assert receipt.proved
    assert receipt.how == "pid 105 on client-1 has ended, and is no longer stopped"


def test_a_client_that_stops_itself_at_its_point_needs_no_signal(director, site):
    client = site.nodes["client-1"]
    client.points.add("before-write")
    site.deaf.add("signals")
    receipt = director.inject(Fault("p", "pause", ["client-1"], {"point": "before-write"}))
    assert receipt.proved
    assert receipt.data["at"] == "at before-write"


@pytest.mark.slow
def test_a_client_that_never_reaches_its_failpoint_is_stopped_where_it_is(director, site):
    receipt = director.inject(Fault("p", "pause", ["client-1"], {"point": "before-write"}))
    assert receipt.proved
    assert receipt.data["at"] == "wherever it was"
    assert site.nodes["client-1"].armed == set()


@pytest.mark.parametrize(
    ("stops_at", "proved"), [("step-7", True), ("step-4", True), (None, False)]
)
def test_a_client_that_stops_again_at_another_failpoint_had_resumed(
    director, site, stops_at, proved
):
    client = site.nodes["client-1"]
    client.points.add("step-4")
    client.at_point = "step-4"
    assert director.inject(Fault("p", "pause", ["client-1"], {"point": "step-4"})).proved

    def signal(pid, number, started=None):
        client.at_point = stops_at  # and is stopped again before the next look
        return True

    client.signal = signal
    receipt = director.heal("p")
    assert receipt.proved is proved
    if proved:
        assert receipt.how == f"pid 105 on client-1 continued to {stops_at}"


def test_a_second_pause_at_a_failpoint_waits_for_the_client_to_come_there_again(director, site):
    client = site.nodes["client-1"]
    client.points.add("before-write")
    client.at_point = "before-write"
    assert director.inject(Fault("p", "pause", ["client-1"], {"point": "before-write"})).proved
    assert director.heal("p").proved
    assert client.at_point is None


@pytest.mark.parametrize("fault", [PAUSE_SERVER, KILL_SERVER])
def test_a_server_that_was_not_running_can_be_neither_stopped_nor_killed(director, site, fault):
    site.nodes["redis-1"].states.clear()
    receipt = director.inject(fault)
    assert receipt.proved is False
    assert "was running" in receipt.how


def test_the_kill_of_a_client_names_its_process_once_all_that_it_wrote_is_recorded(director, site):
    receipt = director.inject(KILL_CLIENT)
    assert receipt.data == {"pid": 105, "processes": [5]}
    assert site.waited_gone == ["client-1"]
    assert director.heal("k").how == "process 8 follows, pid 1105 on client-1"


def test_the_kill_of_a_client_that_had_died_before_is_not_proved_and_hits_no_other_process(
    director, site, monkeypatch
):
    """It did not live until the kill; and its pid may be another's by now."""
    node = site.nodes["client-1"]
    node.states.clear()
    signals = []
    monkeypatch.setattr(node, "signal", lambda pid, number, started=None: signals.append(pid))
    receipt = director.inject(KILL_CLIENT)
    assert receipt == Receipt(
        False,
        "pid 105 on client-1 was gone before it was killed",
        {"pid": 105, "processes": []},
    )
    assert signals == []
    assert site.waited_gone == ["client-1"]


def test_a_client_that_dies_between_the_look_and_the_kill_was_gone_before(
    director, site, monkeypatch
):
    monkeypatch.setattr(site.nodes["client-1"], "signal", lambda pid, number, started=None: False)
    receipt = director.inject(KILL_CLIENT)
    assert not receipt.proved
    assert receipt.data["processes"] == []


def test_a_process_that_ends_when_it_is_to_be_killed_is_followed_by_one_that_is_killed(
    director, succeeded
):
    receipt = director.inject(KILL_CLIENT)
    assert receipt.proved
    assert receipt.data == {"pid": 205, "processes": [5]}
    assert succeeded.states == {}


def test_a_client_that_outlives_its_kill_is_not_named_as_gone(director, site):
    site.deaf.add("signals")
    receipt = director.inject(KILL_CLIENT)
    assert not receipt.proved
    assert receipt.how == "pid 105 on client-1 is still there"
    assert receipt.data["processes"] == []


def test_of_two_clients_only_the_one_that_lived_until_the_kill_is_named(director, site):
    site.nodes["client-2"].states.clear()
    receipt = director.inject(Fault("k", "kill", ["client-1", "client-2"]))
    assert not receipt.proved
    assert receipt.data["processes"] == [5]


def test_a_server_that_must_lose_its_data_is_wiped_before_it_starts_again(director, site):
    director.inject(CRASHES)
    assert [site.nodes[node].wiped for node in CRASHES.targets] == [0, 0, 0]
    director.heal("ks")
    assert [site.nodes[node].wiped for node in CRASHES.targets] == [1, 1, 0]


def test_a_kill_of_which_one_failed_is_not_proved(director, site):
    site.nodes["redis-2"].states.clear()
    receipt = director.inject(CRASHES)
    assert not receipt.proved
    assert "no server was running on redis-2" in receipt.how


RENEWAL = Fault("p", "pause", ["client-1"], {"threads": "renewal"})


def test_the_receipt_of_renewal_names_the_paused_threads(director, site):
    client = site.nodes["client-1"]
    client.threads = ("renew_all", "renew_too")
    receipt = director.inject(RENEWAL)
    assert receipt.proved
    rows = [
        {"tid": 106, "name": "renew_all", "state": "t"},
        {"tid": 107, "name": "renew_too", "state": "t"},
    ]
    assert receipt.data == {"pid": 105, "process": 5, "threads": rows, "main": "R"}
    how = "of pid 105 on client-1, threads 106 (renew_all): t, 107 (renew_too): t; main: R"
    assert receipt.how == how
    assert client.states[105] != "T"
    receipt = director.heal("p")
    assert receipt.proved
    assert client.held == []
    assert "106 (renew_all): S" in receipt.how


def test_renewal_is_unproved_where_no_thread_is_held(director, site):
    assert not director.inject(RENEWAL).proved
    assert director.heal("p").proved
    site.nodes["client-1"].threads = ("renew_all",)
    site.deaf.add("threads")
    assert not director.inject(RENEWAL).proved


def test_it_is_missing_if_one_thread_continues_or_the_whole_client_is_paused(director, site):
    client = site.nodes["client-1"]
    client.threads, client.held = ("renew_all", "renew_too"), ["renew_all"]
    site.deaf.add("threads")
    assert not director.inject(RENEWAL).proved
    assert not director.heal("p").proved
    client.held = ["renew_all", "renew_too", "main"]
    assert not director.inject(RENEWAL).proved
    client.held = []
    assert director.heal("p").proved


def test_a_client_that_was_killed_meanwhile_needs_no_healing(director, site):
    client = site.nodes["client-1"]
    client.threads = ("renew_all",)
    assert director.inject(RENEWAL).proved
    client.states.clear()
    receipt = director.heal("p")
    assert receipt.proved
    assert receipt.how == "pid 105 on client-1 is gone"
    assert not director.inject(RENEWAL).proved
