"""The faults that a hunt is asked for: the names of --nemesis."""

from __future__ import annotations

import pytest

from fencepost.harness.errors import BadArguments
from fencepost.harness.hunting.hunts import renamed
from fencepost.hunt.faults.registry import BEFORE, SIMULATED, narrower, table
from fencepost.nemesis.families import FAMILIES


def kinds(one):
    return list(dict.fromkeys(action.kind for action in table(one)))


def ways(one):
    return {(action.kind, action.way) for action in table(one)}


def test_every_simulated_family_is_one_of_the_nemesis_and_its_kinds_are_its_variants():
    assert set(SIMULATED) <= set(FAMILIES)
    for name, one in SIMULATED.items():
        variants = {f"{name}/{variant}" for variant in FAMILIES[name].variants}
        assert set(one.kinds) <= variants
        assert set(one.unusual) <= set(one.all_kinds)


def test_without_names_a_hunt_has_all_faults_that_fit(setting):
    usual = ("clock", "pause", "partition", "delay", "packet/loss", "kill")
    assert setting("redlock").faults == usual
    assert setting("redlock", persistence="always").faults == (*usual, "power")
    assert setting("redis-replicated").faults == (*usual, "failover")
    assert "clock" not in setting("etcd").faults


def test_the_table_keeps_its_order_whatever_the_order_of_the_names(setting):
    one = setting("redis", "memory,kill,packet/duplicate,packet,clock")
    assert one.faults == ("clock", "packet/loss", "packet/duplicate", "kill", "memory")
    assert kinds(one) == list(one.faults)


def test_a_family_alone_stands_for_what_is_usual_of_it(setting):
    assert kinds(setting("redis", "packet")) == ["packet/loss"]
    assert kinds(setting("redis", "memory")) == ["memory"]


@pytest.mark.parametrize(
    ("entry", "found"),
    [
        ("packet/duplicate", {("packet/duplicate", "message")}),
        ("clock/drift", {("clock", "drift")}),
        ("pause:client", {("pause", "client")}),
        ("kill:one", {("kill", "one")}),
        ("partition:requests", {("partition", "requests")}),
        ("memory/noeviction", {("memory", "noeviction")}),
        ("pause:client,pause:server", {("pause", "client"), ("pause", "server")}),
    ],
)
def test_a_part_of_a_family_is_named_as_the_nemesis_names_it(setting, entry, found):
    assert ways(setting("redis", entry)) == found


def test_every_part_that_can_be_named_has_actions(setting):
    one = setting("redis-replicated", persistence="always")
    for simulated in SIMULATED.values():
        for name in (*simulated.all_kinds, *narrower(simulated, one)):
            assert table(setting("redis-replicated", name, persistence="always")), name


def test_a_client_works_past_its_lease_only_where_a_fault_lets_it(setting):
    assert setting("redis", "pause:client").slow
    assert not setting("redis", "packet,kill").slow


@pytest.mark.parametrize(
    ("lock", "faults", "words"),
    [
        ("redis", "quake", "fault quake: there is no fault 'quake'; choose one of: clock, pause,"),
        ("redis", "disk", "fault disk: the hunt cannot simulate it; choose one of: clock, pause,"),
        ("redis", "packet/reorder", "the hunt simulates packet, packet/loss, packet/duplicate"),
        ("redis", "kill:holder", "the hunt simulates kill, kill:one, kill:client"),
        ("redis", "pause@5s", "there is no fault 'pause@5s'"),
        ("etcd", "clock", "leases of etcd run on monotonic clocks"),
        ("etcd", "memory/noeviction", "only Redis servers have such a limit"),
        ("redis", "failover", "redis cannot fail over; these can: redis-replicated$"),
    ],
)
def test_what_cannot_be_simulated_is_refused(setting, lock, faults, words):
    with pytest.raises(BadArguments, match=words):
        setting(lock, faults)


def test_the_names_of_the_last_version_are_read_with_a_warning(setting):
    assert setting("redis", "drop,duplicate").faults == tuple(BEFORE.values())
    assert renamed("pause, drop") == [
        "--faults drop is called packet/loss now; the next version will refuse it"
    ]
    assert renamed("pause,packet") == renamed(None) == []
