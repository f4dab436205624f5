"""A director records each fault as injected, finds the leader, and heals all of its faults."""

from __future__ import annotations

import pytest

from fencepost.checker import receipts
from fencepost.nemesis import targets
from fencepost.nemesis.director import Director
from fencepost.nemesis.nemesis import Fault
from fencepost.nemesis.schedule import Scheduled
from tests.nemesis.receipt_faults import CRASHES, CUT, JUMP, PAUSE_SERVER


def test_healing_without_an_injection_succeeds_and_writes_nothing(director, recorded):
    assert director.heal("nothing").proved
    assert recorded.ops == []


def test_healing_all_heals_each_fault_once(director, recorded):
    for fault in (CUT, PAUSE_SERVER, JUMP):
        director.inject(fault)
    director.heal_all()
    director.heal_all()
    assert director.on == []
    ends = [op.value["fault"] for op in recorded.ops if op.value["phase"] == "end"]
    assert ends == ["cut"] * 2 + ["p"] * 2 + ["c"] * 2


def test_a_node_that_does_not_answer_is_recorded_and_not_fatal(site, recorded):
    def broken(*_, **__):
        raise RuntimeError("the node does not answer")

    site.nodes["redis-3"].put = broken
    receipt = Director(site, recorded).inject(JUMP)
    assert receipt.how == "it could not be carried out: the node does not answer"
    assert [op.type for op in recorded.ops][:2] == ["invoke", "info"]


@pytest.mark.parametrize(("loses", "targets", "forgets"), [
    (True, ["redis-1"], True), (True, ["client-1"], False), (False, ["redis-1"], False),
])  # fmt: skip
def test_in_a_failover_setup_any_fault_on_a_server_may_make_it_forget(
    site, recorded, loses, targets, forgets
):
    Director(site, recorded, loses=loses).inject(Fault("p", "pause", targets, {}))
    begun = [op.value for op in recorded.ops if op.value["phase"] == "start"]
    assert {value["forgets"] for value in begun} == {forgets}


def test_the_primary_is_the_leader_when_the_fault_starts(director, site, recorded):
    links = [["primary", "redis-1"], ["primary", "redis-2"], ["primary", "client-1"]]
    fault = Fault(
        "f",
        "partition",
        ["primary"],
        {
            "links": links,
            "shape": "primary",
            "words": "the primary is cut off from all other nodes",
        },
    )
    site.leader = "redis-2"
    assert director.inject(fault).proved
    value = recorded.ops[0].value
    assert value["targets"] == ["redis-2"]
    assert value["arguments"]["links"] == [["redis-2", "redis-1"], ["redis-2", "client-1"]]
    assert value["arguments"]["words"] == "redis-2 (the primary) is cut off from all other nodes"


def test_the_holder_is_a_client_that_has_held_a_lock_for_a_while_when_the_fault_starts(
    director, site, recorded
):
    site.held = {"client-1": 0.01, "client-2": 0.3}
    assert director.inject(Fault("f", "kill", ["holder"], {"words": "the holder crashes"})).proved
    value = recorded.ops[0].value
    assert value["targets"] == ["client-2"]
    assert value["arguments"]["words"] == "client-2 (the holder) crashes"
    assert director.heal("f").how == "process 9 follows, pid 1106 on client-2"


def test_a_hold_that_has_just_started_suffices_where_none_lasts(
    director, site, recorded, monkeypatch
):
    monkeypatch.setattr(targets, "_LONG_S", 0.01)
    site.held = {"client-2": 0.001}
    assert director.inject(Fault("f", "kill", ["holder"])).proved
    assert recorded.ops[0].value["targets"] == ["client-2"]


def test_without_a_holder_any_client_is_hit_and_the_record_says_so(director, recorded, monkeypatch):
    monkeypatch.setattr(targets, "_WAIT_S", 0.01)
    assert director.inject(Fault("f", "kill", ["holder"])).proved
    value = recorded.ops[0].value
    assert value["targets"] == ["client-1"]
    assert value["arguments"]["words"] == "client-1 (no client held a lock) crashes"


def test_without_a_leader_there_is_no_fault_and_no_receipt(director, recorded, monkeypatch):
    monkeypatch.setattr(targets, "_ELECTION_S", 0.01)
    assert not director.inject(Fault("f", "pause", ["primary"])).proved
    assert recorded.ops[1].error == [
        "unproved",
        "it could not be carried out: no server has reported for 0.01 s that it leads",
    ]
    assert director.on == []


def test_a_fault_that_fails_half_way_is_healed_at_once_and_recorded_as_failed(
    director, site, recorded, monkeypatch
):
    monkeypatch.setattr("fencepost.nemesis.partition.probe", _unreachable)
    director.inject(CUT)
    assert [op.type for op in recorded.ops] == ["invoke", "info", "invoke", "info"]
    assert director.on == []
    assert all(node.rules == [] for node in site.nodes.values())
    assert receipts.check(recorded.history(), {}).valid == "unknown"


def _unreachable(*_):
    raise RuntimeError("the node does not answer")


def test_a_pause_until_another_holds_ends_with_the_next_grant_to_another(director, site, recorded):
    fault = Scheduled(0.0, 3600.0, "pause", ["client-1"], {"point": None, "until": "other-holds"})

    def grants():
        if director.on:
            site.granted["client-1"] += 1
            if len(site.granted) == 1 and site.granted["client-1"] > 3:
                site.granted["client-2"] += 1
        return False

    director.run([fault], until=grants)
    assert site.granted["client-2"] == 1
    assert [op.value["phase"] for op in recorded.ops] == ["start", "start", "end", "end"]


def test_a_pause_of_the_holder_until_another_holds_counts_the_others_grants(director, site):
    site.held = {"client-1": 0.3}
    fault = Scheduled(0.0, 3600.0, "pause", ["holder"], {"point": None, "until": "other-holds"})

    def grants():
        if director.on:
            assert site.nodes["client-1"].states[site.nodes["client-1"].pid_] == "T"
            site.granted["client-1"] += 1
            if site.granted["client-1"] > 3:
                site.granted["client-2"] = 1
        return False

    director.run([fault], until=grants)
    assert site.granted["client-2"] == 1
    assert director.unhealed == []


@pytest.mark.parametrize("losses", [1, 2])
def test_a_fault_left_by_a_lost_connection_is_healed_by_the_next_attempt(
    director, site, monkeypatch, losses
):
    assert director.inject(CUT).proved
    node, left = site.nodes["redis-2"], [None] * losses
    real = node.write

    def write(rules):
        if left:
            left.pop()
            raise RuntimeError("the connection was lost")
        real(rules)

    monkeypatch.setattr(node, "write", write)
    healed = director.heal("cut")
    assert healed.proved is (losses == 1)
    assert bool(node.rules) is (losses == 2)

    # The next change of the node's rules contains none of the healed faults.
    director.inject(Fault("other", "partition", [], {"links": [["redis-2", "redis-4"]]}))
    assert director.heal("other").proved
    assert not node.rules


def test_a_fault_without_a_description_has_its_family_s_in_the_history(director, recorded):
    director.inject(CRASHES)
    director.inject(Fault("p", "pause", ["redis-4"], {"words": "redis-4 sleeps"}))
    said = [op.value["arguments"]["words"] for op in recorded.ops if op.type == "ok"]
    assert said == ["redis-1, redis-2 and client-2 crash and lose their data", "redis-4 sleeps"]
