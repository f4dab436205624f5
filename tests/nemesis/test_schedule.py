"""A schedule depends on its seed alone, and contains no impossible fault."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import combinations, pairwise, permutations

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from fencepost.harness.servers.kinds import KINDS
from fencepost.nemesis.director import Director
from fencepost.nemesis.failpoints import POINT_S, patience_s
from fencepost.nemesis.families import FAMILIES
from fencepost.nemesis.schedule import Scheduled, draw, from_rows
from fencepost.nemesis.stream import QUIET_START_S
from fencepost.nemesis.targets import Layout

SERVERS = [f"redis-{n}" for n in range(1, 6)]
CLIENTS = [f"client-{n}" for n in range(1, 6)]
RANDOM = tuple(FAMILIES)
# So that they can have faults of every family.
KIND = replace(KINDS["redis"], http=True)
LAYOUT = Layout(SERVERS, CLIENTS, ttl_s=2.0, restart_s=0.0, kind=KIND, replicated=True, leads=True)
FEW = Layout(SERVERS[:1], CLIENTS[:1], ttl_s=2.0, restart_s=2.2, kind=KIND, replicated=True)

SEEDS = st.integers(0, 2**32)
FAMILIES_CHOSEN = st.permutations(RANDOM).flatmap(
    lambda names: st.integers(1, len(names)).map(lambda n: names[:n])
)
LAYOUTS = st.sampled_from([LAYOUT, FEW])


def struck(fault):
    any_server = SERVERS if "primary" in fault.targets else ()
    any_client = CLIENTS if "holder" in fault.targets else ()
    return {*fault.targets, *any_server, *any_client}


def links(fault):
    return FAMILIES[fault.family].strike(fault.targets, fault.arguments, LAYOUT).links


def of(schedule, family):
    return [fault for fault in schedule if fault.family == family]


@given(SEEDS, FAMILIES_CHOSEN, LAYOUTS)
@settings(max_examples=50)
def test_the_same_seed_gives_the_same_schedule(seed, families, layout):
    drawn = [draw(families, seed, 60, 5, layout) for _ in range(2)]
    assert drawn[0] == drawn[1]


@given(SEEDS, FAMILIES_CHOSEN, LAYOUTS)
@settings(max_examples=50)
def test_a_schedule_that_was_stored_is_the_same_again(seed, families, layout):
    drawn = draw(families, seed, 60, 5, layout)
    written = json.dumps([fault.to_json() for fault in drawn])
    assert from_rows(json.loads(written), layout) == drawn


ROW = {"at_s": 1, "duration_s": 2, "family": "pause", "targets": ["redis-1"], "arguments": {}}


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        ({}, "a schedule is a list of faults"),
        ([ROW, {"at_s": 1}], "fault 2: "),
        ([ROW | {"family": "flood"}], "fault 1: there is no family 'flood'"),
        ([ROW | {"targets": ["redis-9"]}], "fault 1: the test has no node 'redis-9'"),
        ([ROW | {"at_s": -1}], "fault 1: at_s: expected `float` >= 0.0"),
        ([ROW | {"at_s": "soon"}], "fault 1: at_s: expected `float`, got `str`"),
        ([ROW, ROW | {"targets": "redis-1"}], "fault 2: targets: expected `array`, got `str`"),
        ([ROW | {"targets": ["redis-1", 2]}], "fault 1: targets[1]: expected `str`, got `int`"),
        (
            [ROW | {"until": 3}],
            "fault 1: contains unknown field `until`; a fault is an object",
        ),
    ],
)
def test_a_stored_schedule_that_can_not_be_carried_out_is_an_error_that_says_where(rows, why):
    with pytest.raises(ValueError) as error:
        from_rows(rows, LAYOUT)
    assert why in str(error.value)


def test_other_seeds_give_other_schedules():
    drawn = {str(draw(RANDOM, seed, 60, 5, LAYOUT)) for seed in range(10)}
    assert len(drawn) == 10


@pytest.mark.parametrize("family", RANDOM)
def test_every_family_occurs_in_a_long_run(family):
    # Among many other faults one that concerns every server finds no room.
    assert len(of(draw([family], 7, 60, 5, LAYOUT), family)) >= 2


@given(SEEDS, FAMILIES_CHOSEN, LAYOUTS, st.integers(1, 120), st.floats(0.5, 20))
@settings(max_examples=100)
def test_every_fault_begins_after_the_quiet_start_and_in_time_and_in_order(
    seed, families, layout, time_s, interval_s
):
    schedule = draw(families, seed, time_s, interval_s, layout)
    starts = [fault.at_s for fault in schedule]
    assert starts == sorted(starts)
    for fault in schedule:
        assert QUIET_START_S <= fault.at_s <= time_s + 0.001
        assert 0 <= fault.duration_s <= max(time_s, layout.restart_s)
        assert fault.family in families
        assert set(fault.targets) <= {*layout.nodes, "primary", "holder"}
        assert fault.arguments["words"]


@given(SEEDS, FAMILIES_CHOSEN, LAYOUTS)
@settings(max_examples=100)
def test_no_node_bears_two_pauses_crashes_or_jumps_at_a_time(seed, families, layout):
    schedule = draw(families, seed, 60, 3, layout)
    own = [fault for fault in schedule if FAMILIES[fault.family].exclusive]
    for first, second in combinations(own, 2):
        if struck(first) & struck(second):
            assert second.at_s > first.at_s + first.duration_s


@given(SEEDS, FAMILIES_CHOSEN, LAYOUTS)
@settings(max_examples=50)
def test_the_order_in_which_families_are_named_changes_nothing(seed, families, layout):
    assert draw(families, seed, 60, 5, layout) == draw(families[::-1], seed, 60, 5, layout)


def test_each_family_has_a_stream_of_its_own():
    drawn = [draw([family], 7, 60, 5, LAYOUT) for family in RANDOM]
    assert len({tuple(fault.at_s for fault in faults) for faults in drawn}) == len(RANDOM)


@pytest.mark.parametrize("seed", range(20))
def test_one_member_of_etcd_leaves_at_a_time(seed):
    at = Layout(
        ["etcd-1", "etcd-2", "etcd-3"], ["client-1"], 2.0, 0.0, kind=KINDS["etcd"], leads=True
    )
    faults = draw(("membership@2s",), seed, 120, 5, at)
    assert len(faults) > 10
    for before, after in pairwise(faults):
        assert before.at_s + before.duration_s < after.at_s


def test_a_link_of_which_one_direction_is_cut_is_cut_by_nothing_else_meanwhile():
    entries = ["partition:requests", "partition:halves@3s", "delay@2s", "partition:primary@4s"]
    schedule = draw(entries, 7, 300, 3, LAYOUT)
    one_way = [f for f in schedule if f.family == "delay" or f.arguments.get("lost")]
    assert len(one_way) > 5
    for fault in one_way:
        for other in schedule:
            during = other.at_s < fault.at_s + fault.duration_s
            if other is not fault and fault.at_s <= other.at_s and during:
                assert not links(fault) & links(other)


@given(SEEDS)
@settings(max_examples=50)
def test_a_server_that_is_cut_off_from_the_others_has_its_clock_left_alone_meanwhile(seed):
    """The paused server serves no client, and so shows no clock to prove the skew by."""
    schedule = draw(["partition", "clock"], seed, 120, 3, LAYOUT)
    for clock in of(schedule, "clock"):
        for cut in of(schedule, "partition"):
            first, second = sorted((clock, cut), key=lambda fault: fault.at_s)
            if second.at_s < first.at_s + first.duration_s:
                between = {frozenset(link) for link in links(cut) if link <= set(SERVERS)}
                assert not struck(clock) & set().union(*between)


@given(SEEDS, LAYOUTS)
@settings(max_examples=50)
def test_partitions_share_their_nodes_and_are_the_same_with_any_other_family(seed, layout):
    beside = draw(["kill", "pause", "partition"], seed, 60, 5, layout)
    alone = draw(["partition"], seed, 60, 5, layout)
    assert of(beside, "partition") == [f for f in alone if f.at_s + f.duration_s <= 56.0]


@given(SEEDS, st.sampled_from(list(permutations(("pause", "clock", "kill"), 2))))
@settings(max_examples=100)
def test_a_family_stays_where_it_was_unless_one_of_its_faults_met_another_s(seed, pair):
    first, second = pair
    alone = draw([second], seed, 20, 10, LAYOUT)
    others = draw([first], seed, 20, 10, LAYOUT)
    assume(not any(struck(a) & struck(o) for a in alone for o in others))
    assert of(draw(pair, seed, 20, 10, LAYOUT), second) == alone


def test_a_crashed_server_stays_down_for_as_long_as_the_test_says():
    away = Layout(SERVERS, CLIENTS, ttl_s=2.0, restart_s=2.2, kind=KINDS["redis"])
    down = [f for f in draw(["kill"], 7, 300, 5, away) if f.targets[0] in SERVERS]
    assert down
    assert {fault.duration_s for fault in down} == {2.2}


@given(SEEDS, st.sampled_from(["kill", "kill:client", "kill:holder", "kill:one,kill"]))
@settings(max_examples=50)
def test_the_last_fault_of_all_kills_a_holder_after_all_others_have_ended(seed, kill):
    *others, last = draw(["pause", "clock", *kill.split(",")], seed, 60, 5, LAYOUT)
    assert (last.family, last.targets, last.at_s, last.duration_s) == ("kill", ["holder"], 56.5, 1)
    assert last.arguments == {"words": "the holder crashes"}
    assert others
    assert all(fault.at_s + fault.duration_s <= 56.0 for fault in others)
    # The schedule allows for a client that does not reach its failpoint.
    waits_s = [patience_s(f.arguments["point"]) if f.arguments.get("point") else 0 for f in others]
    assert all(
        f.at_s + wait_s + f.duration_s <= 56 for f, wait_s in zip(others, waits_s, strict=True)
    )
    late = [fault for fault in others if fault.at_s + POINT_S + fault.duration_s > 56.0]
    late = [fault for fault in late if not fault.arguments.get("point")]
    assert not any(" at " in fault.arguments["words"] for fault in late if fault.family == "pause")


@pytest.mark.parametrize(
    ("entries", "time_s"),
    [(["kill"], 23.9), (["kill:one"], 60), (["kill/wiped"], 60), (["pause"], 60)],
)
def test_a_short_run_and_one_that_kills_no_client_end_without_a_special_fault(entries, time_s):
    assert all("holder" not in fault.targets for fault in draw(entries, 1, time_s, 1, LAYOUT))


CHECKS = replace(LAYOUT, failpoints=("between-check-and-delete",))


@given(SEEDS, st.sampled_from(["pause", "pause:client", "pause:holder", "pause:one,pause"]))
def test_before_that_holders_are_paused_at_their_lock_s_own_failpoint(seed, pause):
    asked = ["clock", "kill", *pause.split(",")]
    *others, one, two, three, kill = draw(asked, seed, 60, 5, CHECKS)
    assert [stop.at_s for stop in (one, two, three)] == [32.5, 40.5, 48.5]
    assert {(stop.family, *stop.targets, stop.duration_s) for stop in (one, two, three)} == {
        ("pause", "holder", 4)
    }
    assert (
        one.arguments
        == two.arguments
        == three.arguments
        == {
            "point": "between-check-and-delete",
            "until": "other-holds",
            "words": "the holder is paused at between-check-and-delete until another holds the "
            "lock",
        }
    )
    assert (kill.family, kill.at_s) == ("kill", 56.5)
    assert others
    assert all(fault.at_s + fault.duration_s <= 32.0 for fault in others)


@given(SEEDS)
def test_the_pause_at_a_failpoint_is_last_if_no_client_is_killed(seed):
    *others, _, stop = draw(["pause", "clock"], seed, 32, 5, CHECKS)
    assert (stop.family, stop.targets, stop.at_s) == ("pause", ["holder"], 24.0)
    assert all(fault.at_s + fault.duration_s <= 15.5 for fault in others)


@pytest.mark.parametrize(
    ("entries", "time_s", "ends"),
    [
        (["pause"], 48, ["pause", "pause", "pause"]),
        (["pause"], 47.9, ["pause", "pause"]),
        (["pause"], 16, ["pause"]),
        (["pause"], 15.9, []),
        (["pause:one"], 60, []),
        (["pause:client/acquired"], 60, []),
        (["pause", "kill"], 55, ["pause", "pause", "pause", "kill"]),
        (["pause", "kill"], 54.9, ["pause", "pause", "kill"]),
        (["pause", "kill"], 24, ["pause", "kill"]),
        (["pause:one", "kill"], 24, ["kill"]),
        (["pause:one", "kill"], 23.9, []),
    ],
)
def test_a_shorter_run_ends_with_a_shorter_final_fault(entries, time_s, ends):
    schedule = draw(entries, 1, time_s, 5, CHECKS)
    times = {round(time_s - before_s, 3) for before_s in (3.5, 8, 11.5, 16, 19.5, 24, 27.5)}
    closing = [one for one in schedule if one.at_s in times and one.targets == ["holder"]]
    assert [fault.family for fault in closing] == ends


def test_a_permanent_fault_does_not_end_before_the_last_fault():
    schedule = draw(["kill", "kill:one/never"], 1, 120, 5, LAYOUT)
    assert schedule[-1].targets == ["holder"]
    assert [fault for fault in schedule if fault.arguments.get("back") == "never"]


def test_a_fault_that_is_tried_again_is_not_drawn_again(monkeypatch):
    drawn = []
    of_family = FAMILIES["kill"].draw

    def draws(random, at, asked):
        drawn.append(asked)
        return of_family(random, at, asked)

    counted = replace(FAMILIES["kill"], draw=draws)
    monkeypatch.setitem(FAMILIES._ours, "kill", counted)
    # One server for both: while one family has it, the other one retries each second.
    one = replace(FEW, restart_s=60.0)
    found = draw(["kill:one", "power"], 1, 3600, 5, one)
    # Eight of the kind whose turn it is, and after a while as many of any kind.
    assert len(drawn) <= 16 * (len(of(found, "kill")) + 1) + 1


def test_a_schedule_is_stored_unchanged():
    fault = Scheduled(1.5, 2.0, "pause", ["redis-1"], {"words": "w"})
    assert Scheduled(**fault.to_json()) == fault


def test_a_director_executes_a_schedule_and_heals_it(director, recorded):
    jump = {"offset_s": 3.0, "words": "jump"}
    schedule = [
        Scheduled(0.0, 0.0, "clock", ["redis-1"], jump),
        Scheduled(0.0, 0.0, "pause", ["redis-2"], {"words": "pause"}),
    ]
    director.run(schedule, until=lambda: False)
    assert director.on == []
    done = {(op.value["fault"], op.value["phase"], op.type) for op in recorded.ops}
    assert {("clock-1", "start", "ok"), ("clock-1", "end", "ok")} <= done
    assert {("pause-2", "start", "ok"), ("pause-2", "end", "ok")} <= done


def test_a_schedule_that_is_cut_short_injects_no_more_and_heals_active_faults(site, recorded):
    director = Director(site, recorded)
    schedule = [
        Scheduled(0.0, 3600.0, "pause", ["redis-1"], {}),
        Scheduled(3600.0, 1.0, "pause", ["redis-2"], {}),
    ]
    director.run(schedule, until=lambda: len(director.on) == 1 and len(recorded.ops) >= 2)
    assert director.on == []
    assert {op.value["fault"] for op in recorded.ops} == {"pause-1"}
    assert site.nodes["redis-1"].states[100] == "S"


def test_a_number_without_end_is_refused_with_the_fault_that_has_it():
    skew = {"offset_s": 10**400}
    row = {"at_s": 1, "duration_s": 2, "family": "clock", "targets": ["redis-1"], "arguments": skew}
    with pytest.raises(ValueError, match="fault 1: int too large"):
        from_rows([row], LAYOUT)


@given(SEEDS)
@settings(max_examples=20)
def test_a_client_is_stopped_mostly_at_a_failpoint_of_its_lock_s_own_past_its_lease(seed):
    own = replace(LAYOUT, failpoints=("between-check-and-delete",))
    drawn = draw(["pause:client"], seed, 4000, 20, own)
    there = [one for one in drawn if one.arguments["point"] == "between-check-and-delete"]
    # Two that may hit the same client are not drawn close together: another way is taken.
    assert 0.6 < len(there) / len(drawn) < 0.9
    assert {one.targets[0] for one in there} == {"holder"}
    until = [one for one in there if "until" in one.arguments]
    assert 0.3 < len(until) / len(there) < 0.7
    assert all(1.3 * own.ttl_s <= one.duration_s <= 2.2 * own.ttl_s for one in there)
    named = draw(["pause:client-2"], seed, 200, 5, own)
    assert {one.targets[0] for one in named} == {"client-2"}
    asked = draw(["pause:client/acquired"], seed, 200, 5, own)
    assert {one.arguments["point"] for one in asked} == {"acquired"}


@pytest.mark.parametrize("target", ["client", "holder"])
def test_renewal_is_paused_for_longer_than_a_lease(target):
    at = replace(LAYOUT, renews=True)
    schedule = draw([f"pause:{target}/renewal"], 1, 300, 5, at)
    assert len(schedule) > 20
    for fault in schedule:
        assert fault.arguments["threads"] == "renewal"
        assert 1.3 * at.ttl_s <= fault.duration_s <= 2.2 * at.ttl_s
        who = "the holder" if target == "holder" else fault.targets[0]
        assert fault.arguments["words"] == f"the threads that renew leases are paused on {who}"
        [row] = from_rows([{**fault.to_json()}], at)
        assert row == fault


@pytest.mark.parametrize(
    ("targets", "arguments", "why"),
    [
        (["redis-1"], {"threads": "renewal"}, "redis-1 is a server"),
        (["client-1"], {"threads": "all"}, "threads 'all': there is only renewal"),
        (["client-1"], {"threads": "renewal", "point": "acquired"}, "as a whole"),
    ],
)
def test_an_invalid_renewal_fault_is_refused(targets, arguments, why):
    row = {"at_s": 1, "duration_s": 1, "family": "pause", "targets": targets}
    at = replace(LAYOUT, renews=None)
    with pytest.raises(ValueError, match=why):
        from_rows([row | {"arguments": arguments}], at)
