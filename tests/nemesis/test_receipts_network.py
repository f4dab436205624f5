"""A probe on each link proves a network fault, and its end."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from fencepost.nemesis import delay, packet, partition
from fencepost.nemesis.iptables import Rule
from fencepost.nemesis.nemesis import Fault
from tests.nemesis.receipt_faults import CUT, DELAYED, LATE, REJECTED, REPLIES, REQUESTS, cut


def test_a_cut_that_stays_is_not_called_healed(director, site, monkeypatch):
    director.inject(CUT)
    monkeypatch.setattr(site, "meets", lambda source, target: "silent")
    assert director.heal("cut").proved is False


def test_a_cut_receipt_shows_a_probe_s_result_on_each_link_with_a_server(director):
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


@pytest.mark.parametrize(("late", "proved"), [(1, True), (3, True), (4, False)])
def test_a_probe_that_ends_before_its_first_packet_proves_no_cut(
    director, site, monkeypatch, late, proved
):
    """Without an answer, and without a packet that the sender's rule dropped, it is done again."""
    meets, probes = site.meets, iter(range(100))
    monkeypatch.setattr(
        site, "meets", lambda *ends: "silent" if next(probes) < late else meets(*ends)
    )
    receipt = director.inject(cut(("client-1", "redis-1")))
    assert receipt.proved is proved
    assert ("but no rule dropped a packet" in str(receipt.data)) is not proved


def test_a_delay_s_probe_that_ends_before_its_first_packet_proves_nothing(
    director, site, monkeypatch
):
    monkeypatch.setattr(site, "meets", lambda source, target: "silent")
    receipt = director.inject(DELAYED)
    assert receipt.proved is False and receipt.how.endswith("0 packets had been held back")


def test_a_cut_between_clients_can_not_be_probed_and_so_not_proved(director):
    assert director.inject(cut(("client-1", "client-2"))).proved is False


def test_a_port_without_a_listener_is_no_cut(director, site):
    """The packets pass; only the server is down."""
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


def test_a_delay_shows_the_delayed_packets_next_to_the_probe_and_ends_when_a_probe_passes(
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


ONE = {"source": "client-1", "to": "redis-1", "connection": True}


def test_a_connection_is_delayed_until_its_pending_messages_arrive(director, site, monkeypatch):
    monkeypatch.setattr(time, "sleep", lambda _: site.passes(*ways, port="--sport 40000"))
    ways = "client-1", "redis-1"
    site.nodes["client-1"].connection = 40_000
    assert director.inject(Fault("h", "delay", list(ways), ONE)).data["port"] == 40_000
    assert not site.passes(*ways, port="--sport 40000")
    assert site.passes(*ways, port="--sport 40001")
    assert site.passes(*ways)
    receipt = director.heal("h")
    assert receipt.proved and receipt.data["held"] == 1
    assert receipt.how.endswith("and then one arrived")
    assert site.passes(*ways, port="--sport 40000")


def test_lost_messages_of_one_connection_stay_lost_until_the_run_ends(director, site):
    ways = "redis-1", "client-1"
    site.nodes["client-1"].connection = 40_000
    lost = {"source": "redis-1", "to": "client-1", "connection": True, "lost": True}
    assert director.inject(Fault("lost", "delay", list(ways), lost)).proved
    assert not site.passes(*ways, port="--dport 40000")
    # Other faults start and end, and each time the chains are rewritten.
    director.inject(DELAYED)
    director.heal(DELAYED.name)
    assert director.heal("lost").data["held"] == 1
    assert not site.passes(*ways, port="--dport 40000")
    director.heal_all()
    assert site.passes(*ways, port="--dport 40000")


def test_a_connection_on_which_nothing_was_dropped_proves_nothing(director, site):
    site.nodes["client-1"].connection = 40_000
    director.inject(Fault("h", "delay", ["client-1", "redis-1"], ONE | {"lost": True}))
    assert director.heal("h").proved is False


def test_a_delayed_message_that_does_not_arrive_proves_nothing(director, site, monkeypatch):
    monkeypatch.setattr(delay, "_TRIES_AGAIN_S", 0.01)
    site.nodes["client-1"].connection = 40_000
    director.inject(Fault("h", "delay", ["client-1", "redis-1"], ONE))
    site.passes("client-1", "redis-1", port="--sport 40000")
    receipt = director.heal("h")
    assert receipt.proved is False
    assert "none arrived" in receipt.how


def test_a_client_that_does_not_say_which_connection_it_uses_has_none_held_back(director, site):
    receipt = director.inject(Fault("h", "delay", ["client-1", "redis-1"], ONE))
    assert receipt.proved is False
    assert "did not report which connection" in receipt.how


def test_messages_that_clients_sent_into_a_cut_can_be_lost_for_good(director, site):
    cut = {"links": [["client-1", "redis-1"]], "sent": "lost"}
    site.nodes["client-1"].unsent = [40_000]
    director.inject(Fault("cut", "partition", ["client-1", "redis-1"], cut))
    receipt = director.heal("cut")
    assert receipt.proved and receipt.how.endswith("data sent on 1 connections is lost")
    assert not site.passes("client-1", "redis-1", port="--sport 40000")
    assert site.passes("client-1", "redis-1", port="--sport 40001")
    director.heal_all()
    assert site.passes("client-1", "redis-1", port="--sport 40000")


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
    assert "disturbed by another fault" in receipt.how
    receipt = director.heal(other.name)
    assert receipt.proved
    assert "another" not in receipt.how


def test_a_one_way_cut_is_proved_by_arrivals_in_each_direction(director, site):
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
    """With an extra rule, packets that should pass are dropped too, and the receipt shows it."""
    director.inject(Fault("both", "partition", [], {"links": [["client-1", "redis-2"]]}))
    receipt = director.inject(REQUESTS)
    assert not receipt.proved
    assert receipt.data["ways"]["redis-2 to client-1"] == "lost"


def test_a_connection_refused_by_a_dead_server_is_no_reject(director, site, monkeypatch):
    monkeypatch.setattr(site, "meets", lambda source, target: "refused")
    receipt = director.inject(REJECTED)
    assert not receipt.proved
    assert set(receipt.data["probes"].values()) == {"refused"}


def test_without_sch_netem_the_receipt_says_that_it_is_not_supported(director, site):
    site.deaf.add("sch_netem")
    assert director.inject(LATE).how == "not supported here: no sch_netem"


LOSSY = Fault("d", "packet", ["client-1"], {"kind": "loss"})


def test_without_sch_netem_packets_are_lost_at_every_other_node(director, site):
    site.deaf.add("sch_netem")
    receipt = director.inject(LOSSY)
    assert receipt.proved and "at 8 of 8 nodes" in receipt.how
    assert site.nodes["client-1"].rules == []
    for node in ("redis-1", "client-2", "storage"):
        (rule,) = site.nodes[node].rules
        assert (rule.way, rule.address, rule.share) == ("IN", site.address("client-1"), 0.3)
    # Another fault rewrites the chains, which resets their counts.
    site.passes("client-1", "redis-1")
    director._chains.add("other", {"redis-1": [Rule("IN", site.address("client-2"))]})
    director._chains.remove("other")
    site.passes("client-1", "storage")
    healed = director.heal("d")
    assert healed.proved and healed.data["lost"] == 2
    assert all(node.rules == [] for node in site.nodes.values())


def test_a_heavy_loss_has_its_share_in_the_rules_and_in_its_words(director, site):
    site.deaf.add("sch_netem")
    heavy = replace(LOSSY, arguments={"kind": "loss", "share": 0.9})
    receipt = director.inject(heavy)
    assert receipt.proved and "loses 90% of client-1's packets" in receipt.how
    assert site.nodes["redis-1"].rules[0].share == 0.9
    site.passes("client-1", "redis-1")
    assert director.heal("d").proved
    assert packet.describe(heavy.targets, heavy.arguments) == "what client-1 sends: loss 90%"


@pytest.mark.parametrize(
    "arguments",
    [
        {"kind": "delay", "share": 0.5},
        *({"kind": "loss", "share": bad} for bad in (0, 1.1, "0.3", float("nan"))),
    ],
)
def test_a_share_of_the_packets_belongs_to_loss_and_is_a_part(arguments):
    with pytest.raises(ValueError, match="share"):
        packet.validate(None, ["client-1"], arguments)


def test_a_loss_by_which_no_packet_was_lost_has_no_receipt(director, site):
    site.deaf.add("sch_netem")
    director.inject(LOSSY)
    sent = []
    site.nodes["client-1"].send_datagram = sent.append
    assert not director.heal("d").proved
    assert len(sent) == packet._PROBES


def test_the_loss_of_a_node_that_sends_nothing_is_proved_by_probes(director, site):
    site.deaf.add("sch_netem")
    director.inject(LOSSY)
    receipt = director.heal("d")
    assert receipt.proved
    assert receipt.how == "1 of client-1's packets were lost (probe 1)"


@pytest.mark.parametrize("netem", [True, False])
def test_a_way_on_which_packets_are_lost_is_no_reason_to_doubt_the_end_of_a_partition(
    director, site, netem
):
    if not netem:
        site.deaf.add("sch_netem")
    links = {"links": [["client-1", "redis-1"], ["client-2", "redis-1"]], "how": "drop"}
    cut = Fault("p", "partition", ["client-1", "client-2", "redis-1"], links)
    assert director.inject(cut).proved
    director.inject(LOSSY)
    meets = site.meets
    site.meets = lambda one, to: "silent" if one == "client-1" else meets(one, to)
    receipt = director.heal("p")
    assert receipt.proved, receipt.how
    assert "disturbed by another fault" in receipt.how
    director.heal("d")
    assert not director._chains.disturbed("client-1", "redis-1")


def test_a_part_of_the_packets_is_no_cut(director, site):
    site.deaf.add("sch_netem")
    director.inject(LOSSY)
    asks = Fault("h", "delay", ["client-2", "redis-1"], {"source": "client-2", "to": "redis-1"})
    assert director.inject(asks).proved
    assert not director._chains.cut("client-1", "redis-1")
    assert director._chains.cut("client-2", "redis-1")


@pytest.mark.parametrize(
    "queue",
    [
        "qdisc tbf 1: root rate 1Mbit",
        # Of a kind that the kernel puts there too: the handle shows that it did not.
        "qdisc fq_codel 8001: root refcnt 2 limit 500p",
        "qdisc netem 1: root refcnt 2 limit 1000",
        "qdisc htb fe9c: root refcnt 2",
    ],
)
def test_another_program_s_queue_is_left_alone(director, site, queue):
    site.nodes["redis-1"].queue = queue
    receipt = director.inject(LATE)
    assert not receipt.proved
    assert "of another program, which must not be changed" in receipt.how
    assert director.heal("d").proved
    assert site.nodes["redis-1"].queue == queue


@pytest.mark.parametrize("kind", ["noqueue", "pfifo_fast", "fq_codel", "mq", "fq", "cake"])
def test_the_kernel_s_own_queue_is_replaced(director, site, kind):
    site.nodes["redis-1"].queue = f"qdisc {kind} 0: root refcnt 2"
    assert director.inject(LATE).proved
    assert director.heal("d").proved


def test_a_cut_names_nodes_that_are_cut_off_from_the_same_ones_together():
    cut = [["client-1", "redis-5"], ["client-2", "redis-1"], ["client-3", "redis-5"]]
    said = partition.FAMILY.describe(
        [], {"links": [*cut, ["client-1", "redis-4"], ["client-3", "redis-4"]]}
    )
    assert said == (
        "client-1 and client-3 are cut off from redis-5 and redis-4; "
        "client-2 is cut off from redis-1"
    )
