"""The facts that a checker may conclude from a fault come from its family, via the history."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from msgspec.structs import force_setattr

from fencepost.checker.facts.faults import faults
from fencepost.checker.history.history import History
from fencepost.harness.servers.kinds import KINDS
from fencepost.nemesis import partition
from fencepost.nemesis.families import FAMILIES, facts
from fencepost.nemesis.fault_spec import Asked
from fencepost.nemesis.nemesis import Fault
from fencepost.nemesis.targets import Layout

SERVERS = [f"redis-{n}" for n in range(1, 6)]
CLIENTS = [f"client-{n}" for n in range(1, 4)]
LAYOUT = Layout(
    SERVERS, CLIENTS, ttl_s=2.0, restart_s=1.0, kind=replace(KINDS["redis"], http=True), leads=True
)

# Examples by family: targets, arguments; nodes that cannot answer, links that are cut, whether
# servers forget.
EXAMPLES = {
    "partition": (
        ["redis-1", "redis-2", "client-1"],
        {"links": [["redis-1", "redis-2"], ["redis-1", "client-1"]]},
        ["redis-1"],
        [["redis-1", "redis-2"], ["redis-1", "client-1"]],
        False,
    ),
    "delay": (
        ["client-1", "redis-1"],
        {"source": "client-1", "to": "redis-1"},
        ["client-1", "redis-1"],
        [["client-1", "redis-1"]],
        False,
    ),
    "packet": (["redis-1"], {"kind": "loss"}, ["redis-1"], [], False),
    "pause": (["client-1"], {"point": None}, ["client-1"], [], False),
    "clock": (["redis-1"], {"offset_s": 5.0}, [], [], True),
    "kill": (["redis-1", "redis-2"], {}, ["redis-1", "redis-2"], [], True),
    "power": (["redis-1"], {}, ["redis-1"], [], True),
    "failover": (SERVERS, {}, SERVERS, [], True),
    "membership": (["redis-1"], {}, ["redis-1"], [], True),
    "memory": (["redis-1"], {"policy": "allkeys-lru"}, ["redis-1"], [], True),
    "disk": (["redis-1"], {}, ["redis-1"], [], True),
    "cpu": (["redis-1"], {"share": 0.02}, ["redis-1"], [], False),
    "cancel": (["client-1"], {"point": None}, [], [], False),
    "http": (
        ["client-1", "redis-1"],
        {"links": [["client-1", "redis-1"]], "kind": "hang"},
        ["client-1", "redis-1"],
        [["client-1", "redis-1"]],
        False,
    ),
}
every_family = pytest.mark.parametrize("family", FAMILIES)


def fault(name):
    """The example of a family, or a fault that it draws."""
    if name in EXAMPLES:
        targets, arguments = EXAMPLES[name][:2]
    else:
        (drawn,) = FAMILIES[name].draw(Random(0), LAYOUT, Asked(name))
        targets, arguments = drawn.targets, drawn.arguments
    return Fault("f", name, targets, arguments)


@pytest.mark.parametrize("family", EXAMPLES)
def test_a_family_names_its_impaired_nodes_cut_links_and_forgetting_servers(family):
    targets, arguments, impairs, links, forgets = EXAMPLES[family]
    assert facts(family, targets, arguments) == {
        "impairs": impairs,
        "links": links,
        "forgets": forgets,
        "loses": (family, arguments.get("kind")) == ("packet", "loss"),
        "stops": targets if family == "pause" else [],
        "rejects": False,
        "only_messages": family in ("partition", "delay", "packet", "http"),
    }


def test_a_partition_by_rejection_says_so():
    links = {"links": [["client-1", "redis-1"]]}
    said = [facts("partition", ["client-1"], links | {"how": how}) for how in ("drop", "reject")]
    assert [one["rejects"] for one in said] == [False, True]


def test_a_pause_of_the_threads_that_renew_stops_no_process():
    assert facts("pause", ["client-1"], {"threads": "renewal"})["stops"] == []


@every_family
def test_the_facts_are_in_the_history_where_a_fault_starts(director, recorded, family):
    one = fault(family)
    director.inject(one)
    begun, done = recorded.ops[:2]
    for op in (begun, done):
        assert op.value["phase"] == "start"
        said = {fact: op.value[fact] for fact in facts(family, [], {})}
        assert said == facts(family, one.targets, one.arguments)


@every_family
def test_a_checker_reads_them_back_whether_or_not_it_knows_the_family(director, recorded, family):
    one = fault(family)
    director.inject(one)
    ops = recorded.ops
    for op in ops:
        force_setattr(op, "f", "gremlin")
    (found,) = faults(History(ops))
    said = facts(family, one.targets, one.arguments)
    assert (found.impairs, found.forgets) == (frozenset(said["impairs"]), said["forgets"])
    assert (found.loses, found.stops) == (said["loses"], frozenset(said["stops"]))
    assert (found.rejects, found.only_messages) == (said["rejects"], said["only_messages"])
    assert found.links == tuple((near, far) for near, far in said["links"])


def test_the_facts_of_a_fault_of_the_primary_name_the_server_that_led(director, recorded, site):
    site.leader = "redis-3"
    links = [["primary", "redis-1"], ["primary", "client-1"]]
    director.inject(Fault("f", "partition", ["primary", "redis-1", "client-1"], {"links": links}))
    assert recorded.ops[0].value["impairs"] == ["redis-3"]
    assert recorded.ops[0].value["links"] == [["redis-3", "redis-1"], ["redis-3", "client-1"]]


def test_an_unknown_family_has_no_facts():
    assert facts("gremlin", ["redis-1"], {}) == {}


def test_every_drawn_fault_impairs_its_nodes_unless_it_is_a_clock_or_a_cancelled_call():
    for name, family in FAMILIES.items():
        at = Layout(
            SERVERS,
            CLIENTS,
            2.0,
            1.0,
            kind=replace(KINDS["redis"], http=True),
            leads=True,
            replicated=True,
            shown=dict.fromkeys((*SERVERS, *CLIENTS), ("wall",)),
        )
        for seed in range(50):
            for drawn in family.draw(Random(seed), at, Asked(name)):
                impairs = facts(name, drawn.targets, drawn.arguments)["impairs"]
                assert bool(impairs) == (name not in ("clock", "cancel")), drawn
                assert set(impairs) <= set(drawn.targets), drawn


# The nodes that a partition impairs.


def impaired(*links):
    return partition.impairs(sorted({node for link in links for node in link}), {"links": links})


def cut_off(near, far):
    return [[one, other] for one in near for other in far]


def test_of_a_single_link_either_end_may_be_the_one_that_is_cut_off():
    assert impaired(["client-1", "redis-1"]) == ["client-1", "redis-1"]


def test_a_node_that_is_cut_off_from_several_is_the_one_that_is_impaired():
    assert impaired(*cut_off(["redis-1"], ["redis-2", "client-1"])) == ["redis-1"]
    assert impaired(*cut_off(["client-1"], SERVERS)) == ["client-1"]


def test_of_two_sides_the_smaller_one_is_impaired():
    assert impaired(*cut_off(SERVERS[:2], [*SERVERS[2:], *CLIENTS])) == SERVERS[:2]


def test_of_two_sides_of_one_size_both_are_impaired():
    assert impaired(*cut_off(SERVERS[:2], SERVERS[2:4])) == SERVERS[:4]


def test_cuts_that_have_nothing_in_common_add_up():
    links = [*cut_off(["redis-1"], CLIENTS), *cut_off(["redis-2"], CLIENTS)]
    assert impaired(*links) == ["redis-1", "redis-2"]


@pytest.mark.parametrize("shape", partition.SHAPES)
def test_without_the_nodes_that_a_partition_impairs_all_links_are_open(shape):
    for seed in range(20):
        (drawn,) = partition.draw(Random(seed), LAYOUT, Asked("partition", shape))
        left_out = set(partition.impairs(drawn.targets, drawn.arguments))
        assert all(left_out & set(link) for link in drawn.arguments["links"])


@pytest.mark.parametrize(
    ("shape", "servers"),
    [("one", {1}), ("primary", {1}), ("minority", {2}), ("client", {0, 1}), ("ring", {4})],
)
def test_a_shape_impairs_a_minority_where_it_leaves_a_majority_of_servers_together(shape, servers):
    found = set()
    for seed in range(20):
        (drawn,) = partition.draw(Random(seed), LAYOUT, Asked("partition", shape))
        impairs = partition.impairs(drawn.targets, drawn.arguments)
        found.add(len(set(impairs) & {*SERVERS, "primary"}))
    assert found == servers


def test_a_partition_without_recorded_links_impairs_its_targets():
    assert partition.impairs(["redis-1"], {}) == ["redis-1"]
