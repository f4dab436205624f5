"""The first schedules of a search with real clients: simple ones, each once."""

from __future__ import annotations

import pytest

from fencepost.harness.hunting.hunts import described
from fencepost.hunt.faults.registry import table
from fencepost.hunt.live.first import simple


@pytest.fixture
def first(tmp_path):
    """Return the first schedules, and the actions of the hunt."""
    (tmp_path / "lock.sh").write_text("")

    def make(faults=None, servers="redis:1", **more):
        hunt = described(
            "", {}, {"seed": 1}, servers=servers, program="sh lock.sh", ship=tmp_path,
            faults=faults, **more,
        )  # fmt: skip
        actions = table(hunt.setting)
        return list(simple(hunt.setting, actions, 8)), actions

    return make


def of_one(schedules):
    """Return the schedules with one injection."""
    return [one for one in schedules if len(one.injections) == 1]


def test_set_ups_without_a_fault_come_first(first):
    schedules, _ = first()
    many = sum(not one.injections for one in schedules)
    assert many > 4 and not any(one.injections for one in schedules[:many])
    assert all(one.injections for one in schedules[many:])
    assert len(set(schedules)) == len(schedules)


def test_only_client_1_and_messages_are_struck(first):
    schedules, actions = first()
    struck = [actions[number - 1] for one in schedules for _, number in one.injections]
    assert {one.kind for one in struck} == {"pause", "delay", "packet/loss", "kill"}
    assert all(one.client == 0 or one.way == "message" for one in struck)


def test_each_message_of_client_1_is_met_and_more(first):
    schedules, _ = first(faults="packet/loss", clients=3)
    steps = {step for one in schedules for step, _ in one.injections}
    assert {1, 4, 7, 22, 25} <= steps
    assert all(step % 3 == 1 for step in steps)


def test_faults_of_servers_alone_leave_the_set_ups(first):
    schedules, _ = first(faults="clock")
    assert schedules and not any(one.injections for one in schedules)


def test_each_kind_of_fault_strikes_each_message_before_a_second_set_up_comes(first):
    schedules, actions = first()
    faulty = of_one(schedules)
    kinds = ("pause", "delay", "packet/loss", "kill")
    begin = faulty[: 12 * len(kinds)]  # 8 messages, and 4 more
    assert {one.head for one in begin} == {faulty[0].head}
    struck = [(step, actions[number - 1].kind) for one in begin for step, number in one.injections]
    assert set(struck) == {(1 + 2 * place, kind) for place in range(12) for kind in kinds}
    # Shorter pauses and delays come before the fourth set-up of the longest.
    heads = list(dict.fromkeys(one.head for one in schedules))
    shorter = next(
        place
        for place, one in enumerate(faulty)
        if one.injections[0][1] == [n for n, a in enumerate(actions, 1) if a.kind == "delay"][1]
    )
    assert shorter < next(place for place, one in enumerate(faulty) if one.head == heads[3])


def test_the_order_leaves_no_schedule_out(first):
    schedules, actions = first()
    heads = list(dict.fromkeys(one.head for one in of_one(schedules)))
    delays = [number for number, one in enumerate(actions, 1) if one.kind == "delay"]
    met = {(one.head, one.injections[0][1]) for one in of_one(schedules)}
    assert {(head, delays[0]) for head in heads} <= met
    assert {(head, delays[3]) for head in heads[:2]} <= met
    assert len(set(schedules)) == len(schedules)


def test_last_client_1_stalls_briefly_and_then_past_its_lease(first):
    schedules, actions = first(faults="pause")
    pairs = [one for one in schedules if len(one.injections) > 1]
    assert len(pairs) == 2 * 12 and pairs == schedules[-len(pairs) :]
    for one in pairs:
        (brief_at, brief), (long_at, long) = one.injections
        assert long_at - brief_at in (2, 4)  # its next message, or the one after
        lasts = [actions[number - 1].inject.args for number in (brief, long)]
        assert lasts == [(0, 60_000_000), (0, 165_000_000)]


def test_a_cluster_of_several_servers_splits_before_other_faults_come(first):
    schedules, actions = first(servers="redis:3")
    splits = [n for n, one in enumerate(actions, 1) if one.way == "split"]
    assert len(splits) == 6  # client-1 with two of the three servers, or with one
    faulty = of_one(schedules)
    assert {one.injections[0][1] for one in faulty[:12]} == {splits[0]}
    assert splits[0] not in {number for one in faulty[12:] for _, number in one.injections}
    schedules, actions = first()
    assert not any(one.way == "split" for one in actions)


def test_the_same_messages_of_a_majority_have_a_fault_before_one_message_has(first):
    schedules, actions = first(servers="redis:5", faults="delay,packet/loss", clients=3)
    kinds = [actions[number - 1].kind for number in (1, len(actions))]
    assert kinds == ["delay", "packet/loss"]
    bursts = [one for one in schedules if len(one.injections) == 3]
    # Of the 8 messages, those of an extension, and 4 more: at each third one.
    steps = [tuple(1 + 3 * place for place in range(n, n + 3)) for n in range(0, 16, 3)]
    assert [one.injections for one in bursts] == [
        tuple((step, number) for step in some) for number in (1, len(actions)) for some in steps
    ]
    assert len({one.head for one in bursts}) == 1
    # Client-1 extends its lease in a hold of part of it, and the others ask meanwhile.
    assert bursts[0].head[1:9] == (0, 1, 1, 0, 2, 1, 2, 0)
    alone = next(place for place, one in enumerate(schedules) if len(one.injections) == 1)
    assert schedules.index(bursts[-1]) < alone


@pytest.mark.parametrize("servers", ["redis:1", "zookeeper:3", "etcd:3"])
def test_no_majority_has_a_fault_where_one_server_or_one_state_decides(first, servers):
    schedules, actions = first(servers=servers, faults="delay,packet/loss")
    assert actions and all(len(one.injections) < 2 for one in schedules)


def test_client_1_is_early_overtaken_by_one_that_holds_past_its_lease(first):
    schedules, _ = first()
    long, second, *_ = dict.fromkeys(one.head for one in schedules)
    assert long[1:5] == (0, 3, 0, 0)
    assert second[1:9] == (0, 0, 0, 1, 2, 3, 0, 0)


def test_no_two_delays_have_the_same_length(first):
    _, actions = first(faults="delay")
    lasts = [one.inject.args[0] // 1_000_000 for one in actions]
    assert lasts == [172, 100, 25, 75]


def test_a_lock_with_extend_extends_in_a_long_hold(first):
    schedules, _ = first()
    heads = list(dict.fromkeys(one.head for one in schedules))
    # Of client-1: when it begins, how long it holds, whether it extends, how many more holds.
    assert (0, 3, 1, 0) in [head[1:5] for head in heads[:4]]


@pytest.mark.parametrize("servers", ["zookeeper:3", "etcd:3", "zookeeper:1"])
def test_client_1_is_first_cut_off_for_longer_than_its_lease_while_it_waits(first, servers):
    schedules, actions = first(servers=servers)
    outages = [n for n, one in enumerate(actions, 1) if one.way == "outage"]
    assert len(outages) == 2 and [actions[n - 1].client for n in outages] == [0, 1]
    faulty = [one for one in schedules if one.injections]
    # At the first half of its messages, in two set-ups in which it asks last.
    mine = faulty[:12]
    assert {one.injections for one in mine} == {((1 + 2 * n, outages[0]),) for n in range(6)}
    assert outages[0] not in {number for one in faulty[12:] for _, number in one.injections}
    assert len({one.head for one in mine}) == 2
    for one in mine:
        begins = [one.head[1], one.head[5]]
        assert begins == [1, 0]


def test_servers_with_one_state_are_not_split_first(first):
    for servers in ("zookeeper:3", "etcd:3"):
        schedules, actions = first(servers=servers)
        splits = {n for n, one in enumerate(actions, 1) if one.way == "split"}
        assert splits
        assert not splits & {number for one in schedules for _, number in one.injections}
    schedules, actions = first(servers="redis:3")
    assert not any(one.way == "outage" for one in actions)
