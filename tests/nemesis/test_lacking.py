"""Nodes are asked which faults they cannot have, and those are drawn only on request."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice

from hypothesis import given
from hypothesis import strategies as st

from fencepost.nemesis import packet
from fencepost.nemesis.families import lacking
from fencepost.nemesis.schedule import draw, from_rows
from fencepost.nemesis.targets import Layout
from fencepost.nemesis.trigger_draws import draws

ABLE = Layout(["redis-1"], ["client-1", "client-2"], ttl_s=2.0, restart_s=0.0)
LACKS = frozenset({"packet/delay", "packet/duplicate", "packet/reorder"})
UNABLE = replace(ABLE, lacks=LACKS)
SEEDS = st.integers(0, 2**32)


def kinds(at, seed, entry="packet"):
    return [fault.arguments["kind"] for fault in draw([entry], seed, 60, 2, at)]


def test_a_kernel_without_sch_netem_can_lose_packets_and_nothing_else(site):
    assert packet.lacks(site.nodes["redis-1"]) == ()
    site.deaf.add("sch_netem")
    assert packet.lacks(site.nodes["redis-1"]) == ("delay", "duplicate", "reorder")


def test_the_question_leaves_no_queue(site):
    node = site.nodes["redis-1"]
    before = node.queue
    asked = []
    run = node.run
    node.run = lambda argv, **how: (asked.append(" ".join(argv)), run(argv, **how))[1]
    packet.lacks(node)
    assert node.queue == before
    assert asked[0].startswith("tc qdisc add dev lo ") and asked[-1].startswith(
        "tc qdisc del dev lo "
    )


def test_a_queue_of_another_program_on_the_loopback_device_stays_and_tells_nothing(site):
    node = site.nodes["redis-1"]
    run = node.run
    refused = replace(run(["tc", "qdisc", "show"]), err="RTNETLINK answers: File exists", code=2)
    node.queue = "qdisc tbf 8001: root rate 1Mbit"
    node.run = lambda argv, **how: refused if "add" in argv else run(argv, **how)
    assert packet.lacks(node) == ()
    assert node.queue == "qdisc tbf 8001: root rate 1Mbit"


def test_the_nodes_that_lack_a_fault_are_named_and_only_if_it_is_asked_for(site):
    site.deaf.add("sch_netem")
    nodes = ("redis-1", "client-1")
    assert lacking(["pause", "kill:client"], nodes, {}.__getitem__) == {}
    found = lacking(["packet:client/loss", "packet", "pause"], nodes, site.nodes.__getitem__)
    assert found == {kind: ["redis-1", "client-1"] for kind in sorted(LACKS)}


@given(SEEDS)
def test_a_kind_that_nodes_lack_is_not_drawn(seed):
    assert set(kinds(UNABLE, seed)) == {"loss"}
    rows = [{"at_s": 1, "duration_s": 1, "fault": "packet"}]
    assert from_rows(rows, UNABLE, seed)[0].arguments["kind"] == "loss"
    for trigger in islice(draws(("packet",), seed, UNABLE), 20):
        for one in (*trigger.before, *trigger.strike):
            assert one.arguments["kind"] == "loss"


def test_nodes_that_lack_nothing_have_every_kind():
    assert set(kinds(ABLE, 7)) == set(packet.KINDS)


@given(SEEDS)
def test_a_requested_kind_is_drawn_all_the_same(seed):
    assert set(kinds(UNABLE, seed, "packet/delay")) == {"delay"}
