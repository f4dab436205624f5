"""Triggered faults are drawn from the seed, fit their layout, and name only possible targets."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from itertools import islice

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fencepost.harness.servers.kinds import KINDS as SERVER_KINDS
from fencepost.nemesis.failpoints import BEFORE, REPLIES, REQUESTS
from fencepost.nemesis.families import FAMILIES
from fencepost.nemesis.targets import Layout
from fencepost.nemesis.trigger_draws import draws
from fencepost.nemesis.triggers import HOLDER, KINDS, Trigger, must_fit, must_make_sense

SERVERS = [f"redis-{n}" for n in range(1, 6)]
CLIENTS = [f"client-{n}" for n in range(1, 6)]
KIND = replace(SERVER_KINDS["redis"], http=True)  # so that faults of HTTP are possible, too
REDLOCK = Layout(SERVERS, CLIENTS, ttl_s=2.0, restart_s=0.0, kind=KIND)
REDIS = replace(REDLOCK, servers=SERVERS[:1])
ETCD = Layout(
    [f"etcd-{n}" for n in range(1, 4)],
    CLIENTS,
    ttl_s=2.0,
    restart_s=0.0,
    kind=replace(SERVER_KINDS["etcd"], http=True),
    leads=True,
)
POINTED = replace(REDIS, failpoints=("between-check-and-delete",))
COUNTED = replace(REDIS, failpoints=REQUESTS)
RENEWED = replace(REDIS, renews=True)
EVERY = tuple(name for name in FAMILIES if name not in ("failover", "membership", "memory"))

SEEDS = st.integers(0, 2**32)
NUMBERS = st.integers(1, 60)
ENTRIES = st.permutations(EVERY).flatmap(
    lambda names: st.integers(1, len(names)).map(lambda n: names[:n])
)
LAYOUTS = st.sampled_from([REDLOCK, REDIS, ETCD, POINTED, COUNTED, RENEWED])


def drawn(entries, seed, at, many):
    return [*islice(draws(entries, seed, at), many)]


@given(SEEDS, NUMBERS, ENTRIES, LAYOUTS)
@settings(max_examples=200)
def test_a_triggered_fault_is_drawn_from_its_seed_and_can_be_replayed_and_stored(
    seed, number, entries, at
):
    play = drawn(entries, seed, at, number)[-1]
    assert play == drawn(entries, seed, at, number)[-1]
    must_fit(entries, at)
    must_make_sense([play], at)
    assert {blow.family for blow in (*play.before, *play.strike)} <= set(entries)
    assert play.kind in KINDS and play.strike and 0 <= play.share < 1 and play.rest_s < at.ttl_s
    stored = json.loads(json.dumps(play.to_json()))
    assert msgspec.convert(stored, Trigger) == play
    struck = [node for blow in play.strike for node in blow.at("client-3").targets]
    assert HOLDER not in struck
    if play.kind == "free":
        assert all(HOLDER not in blow.targets for blow in play.strike)


@given(SEEDS)
@settings(max_examples=30)
def test_where_requests_are_counted_faults_of_the_network_and_of_servers_meet_them(seed):
    plays = drawn(("partition", "packet", "pause"), seed, COUNTED, 119)
    meets = [play.strike[0] for play in plays if play.kind == "request"]
    assert {one.family for one in meets} == {"partition", "packet"}
    for one in meets:
        client, point = one.arguments["client"], one.arguments["point"]
        assert point in BEFORE
        assert client == HOLDER
        at = one.at("client-3")
        assert at.arguments["client"] == "client-3"
        assert at.targets[0] in SERVERS or set(at.targets) <= {at.arguments["client"], *SERVERS}
    servers = drawn(("pause:one",), seed, COUNTED, 19)
    assert any(play.kind == "request" for play in servers)
    assert all(one.kind != "request" for one in drawn(("partition",), seed, REDIS, 19))


@given(SEEDS, st.sampled_from(["pause:one", "partition:minority", "kill:one"]))
def test_one_of_five_faults_of_servers_outlasts_a_lease_and_the_bound(seed, entry):
    plays = drawn((entry,), seed, COUNTED, 18)[2::5]
    assert all(play.lasts_s >= 1.2 * COUNTED.ttl_s + COUNTED.bound_s for play in plays)
    both = drawn((entry, "kill:client"), seed, COUNTED, 6)
    assert any(play.lasts_s >= 1.2 * COUNTED.ttl_s + COUNTED.bound_s for play in both)


@given(SEEDS, st.sampled_from(["packet:one/loss", "packet", "cpu"]))
def test_a_fault_that_leaves_servers_within_reach_is_never_that_long(seed, entry):
    plays = drawn((entry,), seed, COUNTED, 18)
    assert all(play.lasts_s <= 2 * COUNTED.ttl_s for play in plays)


def test_a_pause_until_another_grant_lasts_until_a_lock_that_is_kept_shows_it():
    plays = drawn(("pause:client",), 1, COUNTED, 19)
    held = [play for play in plays if play.until_grant]
    assert held
    assert any(play.lasts_s > COUNTED.ttl_s + COUNTED.bound_s for play in held)


def reached(links, client, servers):
    return {server for server in servers if [client, server] not in links}


@given(SEEDS, st.sampled_from(["clock", "kill", "power"]), st.integers(3, 7))
@settings(max_examples=200)
def test_a_split_leaves_each_client_a_bare_majority_and_hits_the_servers_of_both_groups(
    seed, family, many
):
    servers = [f"redis-{n}" for n in range(many)]
    at = replace(REDLOCK, servers=servers)
    plays = drawn((family, "partition"), seed, at, 11)
    splits = [play for play in plays if play.kind == "split"]
    assert splits
    for play in splits:
        (cut,) = play.before
        links = cut.arguments["links"]
        seen = {frozenset(reached(links, client, servers)) for client in CLIENTS}
        assert len(seen) == 2
        assert {len(group) for group in seen} == {many // 2 + 1}
        one, other = seen
        assert [blow.targets for blow in play.strike] == [
            [s] for s in servers if s in one & other
        ] or ({blow.targets[0] for blow in play.strike} == one & other)
        assert len(one & other) == 2 * (many // 2 + 1) - many
        for blow in play.strike:
            if family == "clock":
                assert 1.05 * at.ttl_s <= blow.arguments["offset_s"] <= 1.6 * at.ttl_s


@pytest.mark.parametrize("family", ["kill", "power"])
def test_a_server_of_both_groups_is_back_at_times_while_the_lease_it_forgot_still_runs(family):
    splits = [one for one in drawn((family, "partition"), 7, REDLOCK, 60) if one.kind == "split"]
    brief = [one for one in splits if one.lasts_s < 0.2 * REDLOCK.ttl_s]
    assert 0.25 * len(splits) < len(brief) < 0.75 * len(splits)


@pytest.mark.parametrize("family", ["kill", "power"])
def test_no_crash_of_a_split_is_shorter_than_the_restart_that_the_user_asked_for(family):
    at = replace(REDLOCK, restart_s=3.0)
    splits = [one for one in drawn((family, "partition"), 7, at, 60) if one.kind == "split"]
    assert splits and all(one.lasts_s >= at.restart_s for one in splits)


@pytest.mark.parametrize(
    ("entries", "at"),
    [
        (("clock",), REDLOCK),
        (("partition",), REDLOCK),
        (("partition", "pause"), REDLOCK),
        (("partition:client", "clock"), REDLOCK),
        (("partition", "clock:redis-1"), REDLOCK),
        (("partition", "clock"), REDIS),
        (("partition", "clock"), ETCD),
    ],
)
def test_nothing_is_split_where_that_was_not_asked_for_or_frees_no_lock(entries, at):
    assert all(one.kind != "split" for one in drawn(entries, 7, at, 59))


def test_requested_triggers_take_turns():
    families = ("pause", "partition", "kill", "clock")
    for seed in range(5):
        for turn in range(3):
            plays = drawn(families, seed, REDIS, 12)[4 * turn : 4 * turn + 4]
            assert {blow.family for play in plays for blow in play.strike} == {*families}


def test_where_the_lock_s_code_has_a_failpoint_holders_are_stopped_there():
    plays = drawn(("pause",), 7, POINTED, 99)
    pointed = [play for play in plays if play.kind == "point"]
    assert len(pointed) > 10
    for play in pointed:
        (blow,) = play.strike
        assert blow.targets == [HOLDER] and play.lasts_s >= 1.3 * POINTED.ttl_s
    met = Counter(play.strike[0].arguments["point"] for play in pointed)
    assert met.keys() == {"between-check-and-delete", "before-write"}
    assert met["between-check-and-delete"] > met["before-write"] > 0


def test_the_failpoints_of_an_entry_take_turns():
    points = ("replies-in-flight", "before-release", "before-extend")
    at = replace(REDIS, failpoints=("before-acquire", *points))
    for seed in range(5):
        plays = drawn(("pause:client",), seed, at, 299)
        found = [play.strike[0].arguments.get("point") for play in plays if play.kind == "point"]
        met = Counter(found)
        met.pop("before-acquire", None)  # drawn as without --aim
        assert met.keys() == {*points, "before-write"}
        assert max(met.values()) < 1.5 * min(met.values())


@given(SEEDS, st.sampled_from(["packet/loss", "partition:client", "pause:one"]))
def test_a_failpoint_s_turn_waits_for_a_trigger_that_uses_it(seed, entry):
    """Else a run of a minute, which has about six triggers of an entry, meets some ops never."""
    requests = [one for one in drawn((entry, "kill"), seed, COUNTED, 60) if one.kind == "request"]
    points = [one.strike[0].arguments["point"] for one in requests]
    every = {point for point in COUNTED.failpoints if point in BEFORE}
    size = len(every)
    for start in range(0, len(points) - size + 1, size):
        assert {*points[start : start + size]} == every


def test_a_failpoint_that_clients_do_not_reach_has_no_turn():
    given_up = ["between-requests"]
    plays = islice(draws(("packet/loss",), 7, COUNTED, lambda: given_up), 60)
    points = Counter(one.strike[0].arguments["point"] for one in plays if one.kind == "request")
    assert "between-requests" not in points
    assert max(points.values()) - min(points.values()) <= 1


def test_a_request_is_met_by_a_loss_of_nearly_all_packets_for_a_short_or_a_long_time():
    at = replace(REDIS, failpoints=("before-acquire", "before-release", "before-extend"))
    plays = drawn(("packet/loss",), 7, at, 199)
    met = [play for play in plays if play.kind == "request"]
    assert {play.strike[0].arguments["share"] for play in met} == {0.9}
    assert {play.strike[0].arguments["point"] for play in met} == {*at.failpoints}
    lengths = [play.lasts_s / at.ttl_s for play in met]
    assert any(length < 0.8 for length in lengths) and any(length >= 1 for length in lengths)


@pytest.mark.parametrize(
    ("how", "lost", "part", "shortest", "longest", "often"),
    [
        # Its client learns of it at once, and may retry within a tenth of a second.
        ("reject", None, 0.4, 0, 0.01, 0.67),
        ("drop", "replies", 0.3, 0.2, 0.8, 0.67),
        ("drop", "requests", 0.2, 1.0, 1.5, 0.67),
        ("drop", None, 0.1, 1.0, 1.5, 0.67),
    ],
)
def test_a_cut_that_meets_a_request_lasts_so_long_that_it_may_show_something(
    how, lost, part, shortest, longest, often
):
    plays = [one for one in drawn(("partition:client",), 7, COUNTED, 999) if one.kind == "request"]
    mine = []
    for one in plays:
        arguments = one.strike[0].arguments
        if (arguments["how"], arguments.get("lost")) == (how, lost):
            mine.append(one.lasts_s / COUNTED.ttl_s)
    assert abs(len(mine) / len(plays) - part) < 0.07
    meant = [length for length in mine if shortest <= length <= longest]
    assert abs(len(meant) / len(mine) - often) < 0.15
    assert all(length <= 1.5 for length in mine)


def test_half_of_the_pauses_at_a_reply_end_before_the_lease():
    """A client that counts its lease from the answer then counts on too long a one."""
    plays = [one for one in drawn(("pause:client",), 7, COUNTED, 599) if one.kind == "point"]
    for point in REPLIES:
        mine = [one for one in plays if one.strike[0].arguments.get("point") == point]
        brief = [one for one in mine if one.lasts_s <= 0.8 * COUNTED.ttl_s]
        assert 0.3 < len(brief) / len(mine) < 0.7


@pytest.mark.parametrize("entry", ["pause:client", "kill:client"])
def test_a_client_that_waits_is_hit_too(entry):
    plays = drawn((entry,), 7, COUNTED, 299)
    anybody = [one for one in plays if {*one.strike[0].targets} <= {*COUNTED.clients}]
    assert {client for one in anybody for client in one.strike[0].targets} == {*COUNTED.clients}
    assert 0.05 < len(anybody) / len(plays) < 0.5


def test_most_cancelled_calls_are_at_a_failpoint_of_the_lock():
    at = replace(REDIS, failpoints=("replies-in-flight", "before-release"), cancels=True)
    plays = drawn(("cancel",), 7, at, 59)
    points = Counter(play.strike[0].arguments.get("point") for play in plays)
    assert points["replies-in-flight"] > 10 and points["before-release"] > 10


def test_a_requested_target_or_method_is_kept():
    for play in drawn(("pause:client/acquired", "kill:redis-2", "clock/+1h"), 7, REDLOCK, 59):
        (blow,) = play.strike
        if blow.family == "pause":
            assert blow.arguments["point"] == "acquired"
        elif blow.family == "kill":
            assert blow.targets == ["redis-2"]
        else:
            assert blow.arguments["offset_s"] == 3600


@pytest.mark.parametrize("entry", ["pause", "pause:client"])
def test_the_renewal_of_a_holder_is_hit_if_it_has_a_thread(entry):
    plays = drawn([entry], 1, RENEWED, 199)
    struck = [play for play in plays if play.strike[0].arguments.get("threads") == "renewal"]
    assert 40 <= len(struck) <= 90
    for play in struck:
        assert play.strike[0].targets == [HOLDER]
        assert play.kind in ("hold", "edge")
        assert 1.3 * RENEWED.ttl_s <= play.lasts_s <= 2.2 * RENEWED.ttl_s
        assert not play.until_grant
    for at in (REDIS, replace(REDIS, renews=None)):
        plays = drawn([entry], 1, at, 199)
        assert not any("threads" in play.strike[0].arguments for play in plays)


def test_a_requested_renewal_fault_is_drawn_if_it_is_unknown_whether_the_lock_renews():
    at = replace(REDIS, renews=None)
    plays = drawn(["pause:holder/renewal"], 1, at, 19)
    assert {str(blow.arguments) for play in plays for blow in play.strike} == {
        "{'threads': 'renewal'}"
    }
