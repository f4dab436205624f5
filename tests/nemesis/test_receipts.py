"""A fault that takes hold has its receipt, and one that does not has none, whatever was done."""

from __future__ import annotations

import pytest

from fencepost.checker import faults
from fencepost.nemesis import targets
from fencepost.nemesis.director import Director
from fencepost.nemesis.nemesis import Fault, NoFaults, Receipt
from fencepost.nemesis.schedule import Scheduled


def cut(*links):
    targets = sorted({node for link in links for node in link})
    return Fault("cut", "partition", targets, {"links": [list(link) for link in links]})


CUT = cut(("client-1", "redis-1"), ("redis-2", "redis-3"))
PAUSE_SERVER = Fault("p", "pause", ["redis-1"])
PAUSE_CLIENT = Fault("p", "pause", ["client-1"])
JUMP = Fault("c", "clock", ["redis-3"], {"offset_s": -5.5})
KILL_SERVER = Fault("k", "kill", ["redis-1"])
KILL_CLIENT = Fault("k", "kill", ["client-1"])
DELAYED = Fault("h", "delay", ["client-1", "redis-1"], {"source": "client-1", "to": "redis-1"})
REJECTED = Fault("r", "partition", CUT.targets, CUT.arguments | {"how": "reject"})
ONE_WAY = {"links": [["client-1", "redis-1"], ["client-1", "redis-2"]]}
REQUESTS = Fault("q", "partition", ["client-1"], ONE_WAY | {"lost": "requests"})
REPLIES = Fault("y", "partition", ["client-1"], ONE_WAY | {"lost": "replies"})
CRASHES = Fault("ks", "kill", ["redis-1", "redis-2", "client-2"], {"data": "wiped"})
PAUSES = Fault("ps", "pause", ["redis-1", "redis-2"])
LEFT = Fault("l", "membership", ["redis-4"])
LATE = Fault("d", "packet", ["redis-1"], {"kind": "delay"})

CASES = [
    (CUT, "rules"),
    (PAUSE_SERVER, "signals"),
    (PAUSE_CLIENT, "signals"),
    (JUMP, "clock"),
    (KILL_SERVER, "signals"),
    (KILL_CLIENT, "signals"),
    (DELAYED, "rules"),
    (REJECTED, "rules"),
    (REQUESTS, "rules"),
    (REPLIES, "rules"),
    (CRASHES, "signals"),
    (PAUSES, "signals"),
    (LEFT, "signals"),
    (LATE, "tc"),
    (LATE, "sch_netem"),
]
NAMES = [
    "partition",
    "pause",
    "pause-client",
    "clock",
    "kill",
    "kill-client",
    "delay",
    "reject",
    "requests",
    "replies",
    "kill-many",
    "pause-many",
    "membership",
    "packet",
    "packet-unsupported",
]
every_family = pytest.mark.parametrize(("fault", "deafness"), CASES, ids=NAMES)


@every_family
def test_a_fault_that_takes_hold_and_is_healed_is_proved_both_times(
    director, recorded, fault, deafness
):
    assert director.inject(fault).proved
    assert [one.name for one in director.on] == [fault.name]
    assert director.heal(fault.name).proved
    assert director.on == []
    assert [(op.type, op.value["phase"]) for op in recorded.ops] == [
        ("invoke", "start"),
        ("ok", "start"),
        ("invoke", "end"),
        ("ok", "end"),
    ]
    assert faults.check(recorded.history(), {}).valid is True


@every_family
def test_a_fault_that_does_not_take_hold_has_no_receipt_and_the_run_is_unknown(
    director, site, recorded, fault, deafness
):
    site.deaf.add(deafness)
    receipt = director.inject(fault)
    site.deaf.clear()
    director.heal(fault.name)
    assert receipt.proved is False
    done = recorded.ops[1]
    assert (done.type, done.error) == ("info", ["unproved", receipt.how])
    assert done.value["receipt"]["proved"] is False
    verdict = faults.check(recorded.history(), {})
    assert verdict.valid == "unknown"
    assert "no receipt; nothing proves that it took hold" in verdict.evidence[0]["what"]


@pytest.mark.parametrize(
    ("fault", "deafness"),
    [
        (PAUSE_SERVER, "signals"),
        (PAUSE_CLIENT, "signals"),
        (JUMP, "clock"),
        (KILL_SERVER, "restart"),
        (LEFT, "restart"),
    ],
)
def test_a_fault_that_stays_on_is_not_called_healed_and_the_run_is_unknown(
    director, site, recorded, fault, deafness
):
    assert director.inject(fault).proved
    site.deaf.add(deafness)
    assert director.heal(fault.name).proved is False
    assert faults.check(recorded.history(), {}).valid == "unknown"


def test_a_cut_that_stays_is_not_called_healed(director, site, monkeypatch):
    director.inject(CUT)
    monkeypatch.setattr(site, "meets", lambda source, target: "silent")
    assert director.heal("cut").proved is False


def test_a_cut_receipt_shows_what_a_probe_met_each_way_that_has_a_server(director):
    assert director.inject(CUT).data == {
        "probes": {
            "client-1 to redis-1": "silent",
            "redis-2 to redis-3": "silent",
            "redis-3 to redis-2": "silent",
        }
    }


def test_a_cut_that_leaves_one_way_open_is_not_proved(director, site, monkeypatch):
    meets = site.meets
    monkeypatch.setattr(
        site,
        "meets",
        lambda source, target: "open" if source == "redis-3" else meets(source, target),
    )
    receipt = director.inject(CUT)
    assert receipt.proved is False
    assert receipt.how == "no answer across 2 of 3 probed ways"


def test_a_cut_between_clients_can_not_be_probed_and_so_not_proved(director):
    assert director.inject(cut(("client-1", "client-2"))).proved is False


def test_a_port_where_nobody_listens_is_no_cut(director, site):
    """The packets pass; only the server is gone."""
    site.nodes["redis-1"].states.clear()
    site.deaf.add("rules")
    receipt = director.inject(cut(("client-1", "redis-1")))
    assert receipt.proved is False
    assert receipt.data["probes"] == {"client-1 to redis-1": "refused"}


def test_cuts_add_up_and_healing_one_leaves_the_other_on(director, site):
    """One link is in both of them."""
    one = cut(("client-1", "redis-1"), ("client-1", "redis-3"))
    two = cut(("client-1", "redis-2"), ("client-1", "redis-1"))
    director.inject(one)
    director.inject(Fault("cut-2", two.family, two.targets, two.arguments))

    def open_to():
        return [s for s in ("redis-1", "redis-2", "redis-3") if site.passes("client-1", s)]

    assert open_to() == []
    director.heal("cut")
    assert open_to() == ["redis-3"]
    director.heal("cut-2")
    assert open_to() == ["redis-1", "redis-2", "redis-3"]
    assert all(node.rules == [] for node in site.nodes.values())


def test_a_delay_tells_what_it_held_beside_the_probe_and_ends_when_a_probe_passes(
    director, site, monkeypatch
):
    director.inject(DELAYED)
    assert not site.passes("client-1", "redis-1")
    assert director.heal("h").data["held"] == 1
    director.inject(DELAYED)
    monkeypatch.setattr(site, "meets", lambda source, target: "silent")
    assert director.heal("h").proved is False


def test_a_delay_stops_one_direction_only(director, site):
    director.inject(DELAYED)
    assert not site.passes("client-1", "redis-1")
    assert site.passes("redis-1", "client-1")


def test_a_clock_s_receipt_is_the_offset_that_the_server_shows(director, site):
    receipt = director.inject(JUMP)
    low_s, high_s = receipt.data["offset_bounds_s"]["redis-3"]["wall"]
    assert low_s <= -5.5 <= high_s < low_s + 0.001
    assert receipt.how == "wall clock set to -5.500 s; redis-3, wall: -5.500 s (±0.000)"
    director.heal("c")
    assert site.nodes["redis-3"].clocks.file_s == 0


def test_a_stopped_client_s_receipt_names_its_state_and_its_process(director):
    receipt = director.inject(PAUSE_CLIENT)
    assert receipt.data == {"pid": 105, "state": "T", "process": 5, "at": "wherever it was"}


def test_a_client_that_stops_itself_at_its_point_needs_no_signal(director, site):
    client = site.nodes["client-1"]
    client.points.add("before-write")
    site.deaf.add("signals")
    receipt = director.inject(Fault("p", "pause", ["client-1"], {"point": "before-write"}))
    assert receipt.proved
    assert receipt.data["at"] == "at before-write"


def test_a_client_that_never_comes_to_its_point_is_stopped_where_it_is(director, site):
    receipt = director.inject(Fault("p", "pause", ["client-1"], {"point": "before-write"}))
    assert receipt.proved
    assert receipt.data["at"] == "wherever it was"
    assert site.nodes["client-1"].armed == set()


@pytest.mark.parametrize("fault", [PAUSE_SERVER, KILL_SERVER])
def test_a_server_that_was_not_there_can_be_neither_stopped_nor_killed(director, site, fault):
    site.nodes["redis-1"].states.clear()
    receipt = director.inject(fault)
    assert receipt.proved is False
    assert "was there" in receipt.how


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
    monkeypatch.setattr(node, "signal", lambda pid, number: signals.append(pid))
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
    monkeypatch.setattr(site.nodes["client-1"], "signal", lambda pid, number: False)
    receipt = director.inject(KILL_CLIENT)
    assert not receipt.proved
    assert receipt.data["processes"] == []


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


def test_healing_what_was_never_injected_is_fine_and_writes_nothing(director, recorded):
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


def test_a_node_that_does_not_answer_is_booked_and_not_fatal(site, recorded):
    def broken(*_, **__):
        raise RuntimeError("the node does not answer")

    site.nodes["redis-3"].put = broken
    receipt = Director(site, recorded).inject(JUMP)
    assert receipt.how == "it could not be carried out: the node does not answer"
    assert [op.type for op in recorded.ops][:2] == ["invoke", "info"]


def test_a_nemesis_that_does_nothing_says_so():
    assert NoFaults().inject(CUT).proved is False
    assert NoFaults().heal(CUT).proved is True


def test_a_way_that_another_partition_cuts_as_well_is_no_reason_to_doubt_the_first_one_s_end(
    director,
):
    other = Fault(
        "other", "partition", ["client-1", "redis-1"], {"links": [["redis-1", "client-1"]]}
    )
    assert director.inject(CUT).proved
    assert director.inject(other).proved
    receipt = director.heal(CUT.name)
    assert receipt.proved
    assert "cut by another fault still" in receipt.how
    receipt = director.heal(other.name)
    assert receipt.proved
    assert "another" not in receipt.how


def test_one_way_is_proved_by_what_arrives_in_each_direction(director, site):
    receipt = director.inject(REQUESTS)
    assert receipt.data["ways"] == {
        "client-1 to redis-1": "dropped",
        "redis-1 to client-1": "passed",
        "client-1 to redis-2": "dropped",
        "redis-2 to client-1": "passed",
    }
    assert not site.passes("client-1", "redis-1")
    assert site.passes("redis-1", "client-1")
    director.heal("q")
    assert director.inject(REPLIES).data["ways"]["redis-1 to client-1"] == "dropped"


def test_a_cut_in_both_directions_is_no_cut_of_one(director, site):
    """A rule too many: what was to pass is dropped as well, and the receipt sees it."""
    director.inject(Fault("both", "partition", [], {"links": [["client-1", "redis-2"]]}))
    receipt = director.inject(REQUESTS)
    assert not receipt.proved
    assert receipt.data["ways"]["redis-2 to client-1"] == "lost"


def test_who_refuses_because_it_is_down_has_not_been_rejected(director, site, monkeypatch):
    monkeypatch.setattr(site, "meets", lambda source, target: "refused")
    receipt = director.inject(REJECTED)
    assert not receipt.proved
    assert set(receipt.data["probes"].values()) == {"refused"}


def test_without_sch_netem_the_receipt_says_that_it_is_not_supported(director, site):
    site.deaf.add("sch_netem")
    assert director.inject(LATE).how == "not supported here: no sch_netem"


def test_somebody_else_s_queue_is_left_alone(director, site):
    site.nodes["redis-1"].queue = "qdisc tbf 1: root rate 1Mbit"
    assert not director.inject(LATE).proved
    assert director.heal("d").proved
    assert site.nodes["redis-1"].queue == "qdisc tbf 1: root rate 1Mbit"


def test_a_server_whose_data_is_to_be_lost_is_wiped_before_it_starts_again(director, site):
    director.inject(CRASHES)
    assert [site.nodes[node].wiped for node in CRASHES.targets] == [0, 0, 0]
    director.heal("ks")
    assert [site.nodes[node].wiped for node in CRASHES.targets] == [1, 1, 0]


def test_a_kill_of_which_one_failed_is_not_proved(director, site):
    site.nodes["redis-2"].states.clear()
    receipt = director.inject(CRASHES)
    assert not receipt.proved
    assert "no server was there on redis-2" in receipt.how


def test_the_primary_is_who_leads_when_the_fault_begins(director, site, recorded):
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


def test_where_nobody_leads_there_is_no_fault_and_no_receipt(director, recorded, monkeypatch):
    monkeypatch.setattr(targets, "_ELECTION_S", 0.01)
    assert not director.inject(Fault("f", "pause", ["primary"])).proved
    assert recorded.ops[1].error == [
        "unproved",
        "it could not be carried out: no server has said for 0.01 s that it leads",
    ]
    assert director.on == []


def test_a_fault_that_fails_half_way_is_healed_at_once_and_booked_as_failed(
    director, site, recorded, monkeypatch
):
    monkeypatch.setattr("fencepost.nemesis.partition.probe", _unreachable)
    director.inject(CUT)
    assert [op.type for op in recorded.ops] == ["invoke", "info", "invoke", "info"]
    assert director.on == []
    assert all(node.rules == [] for node in site.nodes.values())
    assert faults.check(recorded.history(), {}).valid == "unknown"


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


@pytest.mark.parametrize("losses", [1, 2])
def test_what_a_lost_connection_kept_from_being_healed_is_healed_by_the_next_attempt(
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

    # Whoever writes the node's rules next writes none of those that are over.
    director.inject(Fault("other", "partition", [], {"links": [["redis-2", "redis-4"]]}))
    assert director.heal("other").proved
    assert not node.rules


def test_a_fault_that_was_given_no_words_stands_in_the_history_with_its_family_s(
    director, recorded
):
    director.inject(CRASHES)
    director.inject(Fault("p", "pause", ["redis-4"], {"words": "redis-4 sleeps"}))
    said = [op.value["arguments"]["words"] for op in recorded.ops if op.type == "ok"]
    assert said == ["redis-1, redis-2 and client-2 crash and lose their data", "redis-4 sleeps"]
