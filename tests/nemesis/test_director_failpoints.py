"""A director stops clients at failpoints, and resumes those that came there at a wrong moment."""

from __future__ import annotations

import threading
import time

import pytest

from fencepost.nemesis import failpoints
from fencepost.nemesis.nemesis import Fault

AT_ITS_POINT = Fault("f", "pause", ["holder"], {"point": "between"})


def test_the_holder_at_a_failpoint_is_the_first_client_to_reach_it(director, site, recorded):
    site.held = {"client-1": 5.0}
    site.nodes["client-2"].points.add("between")
    receipt = director.inject(AT_ITS_POINT)
    assert receipt.proved
    assert receipt.data["at"] == "at between"
    assert recorded.ops[0].value["targets"] == ["client-2"]
    words = "client-2 (the holder) is paused at between"
    assert recorded.ops[0].value["arguments"]["words"] == words
    assert [site.nodes[name].armed for name in ("client-1", "client-3")] == [set(), set()]
    assert director.heal("f").proved


def test_a_release_after_its_lease_is_passed_over(director, site, recorded):
    for name in ("client-1", "client-2"):
        site.nodes[name].points.add("before-release")
    site.late = {"client-1"}
    resumed = _resuming(site, "client-1", lambda node: node.points.clear())
    fault = Fault("f", "pause", ["holder"], {"point": "before-release"})
    assert director.inject(fault).proved
    assert recorded.ops[0].value["targets"] == ["client-2"]
    assert resumed
    assert site.nodes["client-1"].states[site.nodes["client-1"].pid_] != "T"


@pytest.mark.parametrize("how", ["holds", "held and released"])
def test_the_reply_to_an_acquire_is_passed_over_if_another_client_was_granted_the_lock(
    director, site, recorded, how
):
    site.nodes["client-1"].points.add("replies-in-flight")
    site.nodes["client-1"].after_arming = lambda: _grant(site, "client-3", holds=how == "holds")

    def released(node):
        node.points.clear()
        node.after_arming = lambda: None
        site.held.clear()
        site.nodes["client-2"].points.add("replies-in-flight")

    resumed = _resuming(site, "client-1", released)
    fault = Fault("f", "pause", ["holder"], {"point": "replies-in-flight"})
    assert director.inject(fault).proved
    assert resumed
    assert recorded.ops[0].value["targets"] == ["client-2"]


def test_the_reply_to_an_acquire_is_that_to_a_request_which_is_sent_when_the_lock_is_free(
    director, site, recorded
):
    for node in ("client-1", "client-2", "client-3"):
        site.nodes[node].counts = True
    client = site.nodes["client-1"]
    client.points |= {"before-acquire", "replies-in-flight"}
    site.held = {"client-2": 1.0}
    held_at_resumption = []
    _resuming(site, "client-1", lambda node: held_at_resumption.append(bool(site.held)))
    timer = threading.Timer(0.2, site.held.clear)
    timer.start()
    receipt = director.inject(Fault("f", "pause", ["holder"], {"point": "replies-in-flight"}))
    timer.join()
    assert receipt.proved
    assert receipt.data["at"] == "at replies-in-flight"
    assert recorded.ops[0].value["targets"] == ["client-1"]
    assert held_at_resumption == [False]


def test_a_client_whose_acquire_has_no_reply_is_resumed_and_passed_over(
    director, site, recorded, monkeypatch
):
    monkeypatch.setattr(failpoints, "_REPLY_S", 0.05)
    for node in ("client-1", "client-2", "client-3"):
        site.nodes[node].counts = True
    site.nodes["client-1"].points.add("before-acquire")

    def silent(node):
        node.points.clear()
        site.nodes["client-2"].points |= {"before-acquire", "replies-in-flight"}

    resumed = _resuming(site, "client-1", silent)
    fault = Fault("f", "pause", ["holder"], {"point": "replies-in-flight"})
    assert director.inject(fault).proved
    assert resumed
    assert recorded.ops[0].value["targets"] == ["client-2"]
    assert site.nodes["client-1"].armed == set()


def test_a_client_that_is_always_late_is_hit_in_the_end(director, site, recorded, monkeypatch):
    monkeypatch.setattr(failpoints, "POINT_S", 1.0)
    site.nodes["client-1"].points.add("before-release")
    site.late = {"client-1"}
    fault = Fault("f", "pause", ["holder"], {"point": "before-release"})
    assert director.inject(fault).proved
    assert recorded.ops[0].value["targets"] == ["client-1"]


@pytest.mark.parametrize("family", ["partition", "pause"])
def test_a_fault_of_others_meets_the_request_of_the_client_that_comes_first(
    director, site, recorded, family
):
    site.nodes["client-2"].points.add("before-extend")
    meets = {"point": "before-extend", "client": "holder"}
    targets, arguments = ["redis-1"], meets
    if family == "partition":
        targets = ["holder", "redis-1"]
        arguments = meets | {"links": [["holder", "redis-1"]], "how": "drop"}
    receipt = director.inject(Fault("f", family, targets, arguments))
    assert receipt.data["at"] == "at before-extend"
    value = recorded.ops[0].value
    assert value["arguments"]["client"] == "client-2"
    assert value["targets"] == (["client-2", "redis-1"] if family == "partition" else ["redis-1"])


def test_an_acquire_meets_its_fault_once_the_lock_is_free(director, site):
    client = site.nodes["client-1"]
    client.points.add("before-acquire")
    site.held = {"client-2": 1.0}
    held_at_resumption = []
    leave = client.leave_failpoint
    client.leave_failpoint = lambda: (held_at_resumption.append(bool(site.held)), leave())
    timer = threading.Timer(0.1, site.held.clear)
    timer.start()
    meets = {"point": "before-acquire", "client": "client-1"}
    assert director.inject(Fault("f", "pause", ["redis-1"], meets)).proved
    timer.join()
    assert held_at_resumption == [False]


def test_a_fault_that_meets_the_request_of_a_client_passes_over_its_late_release(director, site):
    client = site.nodes["client-1"]
    client.points.add("before-release")
    site.late = {"client-1"}
    resumed = _resuming(site, "client-1", lambda node: site.late.clear())
    meets = {"point": "before-release", "client": "client-1"}
    links = {"links": [["client-1", "redis-1"]], "how": "drop"}
    fault = Fault("f", "partition", ["client-1", "redis-1"], links | meets)
    assert director.inject(fault).data["at"] == "at before-release"
    assert len(resumed) == 2  # once in vain, and once when the fault had begun


def _grant(site, client, holds):
    site.granted[client] += 1
    if holds:
        site.held = {client: 1.0}


def _resuming(site, name, then):
    """Return the list of the times that a client is resumed; `then` is called with it at the
    first."""
    node, resumed = site.nodes[name], []
    leave = node.leave_failpoint

    def leave_failpoint():
        leave()
        if "T" in node.states.values():
            resumed.append(name)
            if len(resumed) == 1:
                then(node)

    node.leave_failpoint = leave_failpoint
    return resumed


def test_another_client_that_reaches_it_in_the_same_moment_continues(director, site, recorded):
    for name in ("client-2", "client-3"):
        site.nodes[name].points.add("between")
        site.nodes[name].at_point = "between"
    assert director.inject(AT_ITS_POINT).proved
    struck, other = site.nodes["client-2"], site.nodes["client-3"]
    assert recorded.ops[0].value["targets"] == ["client-2"]
    assert (struck.at_point, struck.states[struck.pid_]) == ("between", "T")
    assert (other.at_point, other.states[other.pid_], other.armed) == (None, "S", set())


def test_if_no_client_reaches_it_a_holder_is_stopped_where_it_is(
    director, site, recorded, monkeypatch
):
    monkeypatch.setattr(failpoints, "POINT_S", 0.05)
    site.held = {"client-3": 5.0}
    receipt = director.inject(AT_ITS_POINT)
    assert receipt.proved
    assert receipt.data["at"] == "wherever it was"
    assert recorded.ops[0].value["targets"] == ["client-3"]
    assert all(site.nodes[name].armed == set() for name in site.clients)


def test_a_client_is_killed_at_its_failpoint(director, site, recorded):
    site.nodes["client-2"].points.add("between")
    at_its_point = Fault("k", "kill", ["holder"], {"point": "between"})
    receipt = director.inject(at_its_point)
    assert receipt.proved
    assert receipt.data["at"] == "at between" and receipt.how.endswith("is gone, killed at between")
    assert receipt.data["processes"] == [site.nodes["client-2"].process]
    assert recorded.ops[0].value["arguments"]["words"] == "client-2 (the holder) crashes at between"
    assert director.heal("k").proved


def test_a_client_that_does_not_reach_its_failpoint_is_killed_where_it_is(
    director, site, monkeypatch
):
    monkeypatch.setattr(failpoints, "POINT_S", 0.05)
    receipt = director.inject(Fault("k", "kill", ["client-1"], {"point": "between"}))
    assert receipt.proved and failpoints.missed(receipt.data)
    assert site.nodes["client-1"].armed == set()


def test_nobody_waits_for_an_extension_of_a_lock_that_has_none(director, site):
    site.held = {"client-1": 5.0}
    for name in site.clients:
        site.nodes[name].extends = False
    begun = time.monotonic()
    receipt = director.inject(Fault("f", "pause", ["holder"], {"point": "before-extend"}))
    assert failpoints.missed(receipt.data)
    assert time.monotonic() - begun < failpoints.POINT_S / 2


WHILE_IT_WAITS = {"point": "between", "client": "client-2"}


@pytest.mark.parametrize("there", [True, False])
def test_a_fault_begins_while_a_client_waits_at_its_failpoint_and_then_it_goes_on(
    director, site, recorded, monkeypatch, there
):
    monkeypatch.setattr(failpoints, "POINT_S", 0.05)
    client = site.nodes["client-2"]
    client.points |= {"between"} if there else set()
    real, seen = site.nodes["redis-1"].pause, []
    monkeypatch.setattr(
        site.nodes["redis-1"], "pause", lambda: (seen.append(client.states[client.pid_]), real())[1]
    )
    receipt = director.inject(Fault("f", "pause", ["redis-1"], WHILE_IT_WAITS))
    assert receipt.proved and failpoints.missed(receipt.data) is not there
    assert seen == ["T" if there else "S"]
    assert client.states[client.pid_] == "S" and (there or not client.armed)
    words = "redis-1 is paused, when client-2 is at between"
    assert recorded.ops[0].value["arguments"]["words"] == words
    assert recorded.ops[0].value["impairs"] == ["redis-1"]
    assert director.heal("f").proved


def test_a_client_that_waits_for_a_fault_goes_on_even_if_the_fault_fails(
    director, site, monkeypatch
):
    client = site.nodes["client-2"]
    client.points.add("between")

    def fail():
        raise RuntimeError("the node is gone")

    monkeypatch.setattr(site.nodes["redis-1"], "pause", fail)
    assert not director.inject(Fault("f", "pause", ["redis-1"], WHILE_IT_WAITS)).proved
    assert client.states[client.pid_] == "S"


def test_a_holder_that_is_stopped_anywhere_is_not_waited_for(director, site, recorded):
    site.held = {"client-1": 5.0}
    site.nodes["client-1"].points.add("between")
    assert director.inject(Fault("f", "pause", ["holder"])).proved
    assert recorded.ops[0].value["targets"] == ["client-1"]
    assert not site.nodes["client-1"].armed


@pytest.mark.parametrize("extends", [True, False])
def test_clients_whose_ops_send_one_request_are_not_waited_for_between_requests(
    director, site, monkeypatch, extends
):
    monkeypatch.setattr(failpoints, "POINT_S", 600)
    client, asked = site.nodes["client-1"], []
    client.extends = extends

    def answered(f):
        # One more of each op is answered now and then; extends come later.
        asked.append(f)
        return asked.count(f) // (8 if f == "release" else 32)

    monkeypatch.setattr(client, "answered", answered)
    receipt = director.inject(Fault("f", "pause", ["client-1"], {"point": "between-requests"}))
    assert failpoints.missed(receipt.data)
    assert client.armed == set()
    assert asked.count("extend") >= (64 if extends else 0)
    assert ("extend" in asked) is extends
