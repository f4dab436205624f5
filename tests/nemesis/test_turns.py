"""Kinds of faults take turns: each comes once before one comes twice, and in the end as often as by
chance."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import islice
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fencepost.harness.servers.kinds import KINDS
from fencepost.nemesis import http, packet, partition
from fencepost.nemesis.fault_spec import Asked
from fencepost.nemesis.schedule import draw
from fencepost.nemesis.shapes import possible
from fencepost.nemesis.targets import HOLDER, Layout
from fencepost.nemesis.trigger_draws import draws
from fencepost.nemesis.turns import deal, dealing, length, one_in

SEEDS = st.integers(0, 2**32)
AT = Layout(
    ["redis-1", "redis-2", "redis-3"],
    ["client-1", "client-2", "client-3"],
    ttl_s=2.0,
    restart_s=0.0,
    kind=replace(KINDS["redis"], http=True),
)
HTTP_KINDS = {"hang", "reset", "409", "429", "500", "503", "slow", "lost"}
LATE = {"hang", "slow"}
CLOSED = {"reset", "lost"}
LETTERS = st.lists(st.sampled_from("abcde"), min_size=1, max_size=8)


def scheduled(entries, seed, many, at=AT):
    """The first faults of a schedule."""
    return draw(entries, seed, 60.0 * many, 5, at)[:many]


def triggered(entries, seed, many, at=AT):
    """The first faults of triggers."""
    return [trigger.strike[-1] for trigger in islice(draws(entries, seed, at), many)]


SOURCES = pytest.mark.parametrize("source", [scheduled, triggered])


def of(faults, argument):
    return [fault.arguments[argument] for fault in faults]


@given(SEEDS, LETTERS, st.integers(1, 4))
def test_each_option_is_dealt_as_often_as_it_is_listed_in_every_cycle(seed, options, cycles):
    random = dealing("x", str(seed), {})
    for _ in range(cycles):
        assert Counter(deal(random, "kind", options) for _ in options) == Counter(options)


@given(SEEDS, st.lists(st.sampled_from([0.25, 0.5, 1.0, 1.5, 3.0]), min_size=1, max_size=5))
def test_weights_are_shares_of_a_cycle(seed, weights):
    options = [*range(len(weights))]
    cards = round(sum(weights) * 4)
    random = dealing("x", str(seed), {})
    found = Counter(deal(random, "entry", options, weights) for _ in range(cards))
    assert found == {option: 4 * weight for option, weight in enumerate(weights)}


def test_weights_that_need_too_large_a_deck_are_left_to_chance():
    random = dealing("x", "y", {})
    found = Counter(deal(random, "entry", "ab", [1000, 0.001]) for _ in range(100))
    assert found["a"] > 95
    assert random.taken == {}


@given(SEEDS, LETTERS)
def test_an_earlier_state_deals_the_same_cards_again(seed, options):
    random = dealing("x", str(seed), {})
    first = [deal(random, "kind", options) for _ in range(5)]
    again = dealing("another", str(seed), {})
    assert [deal(again, "kind", options) for _ in range(5)] == first
    rest = dealing("third", str(seed), random.taken)
    assert [deal(random, "kind", options) for _ in range(7)] == [
        deal(rest, "kind", options) for _ in range(7)
    ]


def test_decks_of_other_names_entries_and_seeds_are_in_other_orders():
    def order(decks="s", entry="http", name="kind"):
        random = dealing("x", decks, {})
        random.entry = entry
        return "".join(deal(random, name, "abcdefgh") for _ in range(8))

    orders = [order(), order(decks="t"), order(entry="packet"), order(name="where")]
    assert len({*orders}) == 4


def test_the_next_cycle_is_in_another_order():
    random = dealing("x", "y", {})
    cycles = {"".join(deal(random, "kind", "abcdefgh") for _ in range(8)) for _ in range(5)}
    assert len(cycles) == 5


@given(SEEDS, st.integers(1, 5))
def test_options_that_are_alike_are_spread_over_a_cycle(seed, many):
    options = [f"{letter}{number}" for letter in "xy" for number in range(many)]
    random = dealing("x", str(seed), {})
    found = [deal(random, "kind", options, alike=lambda one: one[0])[0] for _ in options]
    assert all({*found[place : place + 2]} == {"x", "y"} for place in range(0, 2 * many, 2))


def test_a_draw_that_comes_to_nothing_takes_no_turn():
    random = dealing("x", "y", {})
    first = []
    assert random.attempt(lambda: first.append(deal(random, "kind", "abc"))) is None
    assert random.attempt(lambda: deal(random, "kind", "abc")) == deal(
        dealing("x", "y", {}), "kind", "abc"
    )
    assert sum(random.taken.values()) == 1


@given(SEEDS)
def test_lengths_are_of_the_upper_and_the_lower_half_in_turn(seed):
    random = dealing(str(seed), "y", {})
    found = [length(random, "cut", 0.5, 2.0) for _ in range(10)]
    assert all(1.25 <= one <= 2.0 for one in found[::2])
    assert all(0.5 <= one <= 1.25 for one in found[1::2])


@given(SEEDS, LETTERS)
def test_other_sources_of_chance_choose_as_they_always_did(seed, options):
    """Hunts draw so: their schedules stay as they were."""
    one, other = Random(seed), Random(seed)
    assert deal(one, "kind", options) == other.choice(options)
    weights = [number + 1 for number, _ in enumerate(options)]
    assert deal(one, "kind", options, weights) == other.choices(options, weights)[0]
    assert one_in(one, "server", 3) == (other.random() < 1 / 3)
    assert length(one, "cut", 0.5, 2.0) == other.uniform(0.5, 2.0)


@SOURCES
@given(SEEDS)
@settings(max_examples=20)
def test_eight_faults_of_http_have_all_eight_kinds_and_four_all_that_a_client_can_see(source, seed):
    kinds = of(source(["http"], seed, 8), "kind")
    assert {*kinds} == HTTP_KINDS
    early = {*kinds[:4]}
    assert early & LATE and early & CLOSED and early - LATE - CLOSED


@given(SEEDS)
@settings(max_examples=8)
def test_a_schedule_has_every_shape_of_a_partition_once_and_rejects_in_one_of_four(seed):
    shapes = possible(AT)
    found = scheduled(["partition"], seed, len(shapes))
    assert sorted(of(found, "shape")) == sorted(shapes)
    both_ways = [one for one in scheduled(["partition"], seed, 40) if "lost" not in one.arguments]
    rejects = [one.arguments["how"] == "reject" for one in both_ways]
    assert all(sum(rejects[place : place + 4]) == 1 for place in range(0, len(rejects) - 3, 4))


@pytest.mark.parametrize(
    ("entry", "argument", "kinds"),
    [
        ("packet", "kind", set(packet.KINDS)),
        ("memory", "policy", {"allkeys-lru", "noeviction"}),
        ("pause:client", "point", {"acquired", "before-write", "replies-in-flight", None}),
    ],
)
@given(seed=SEEDS)
@settings(max_examples=30)
def test_a_schedule_has_each_kind_once_before_one_comes_twice(entry, argument, kinds, seed):
    found = of(scheduled([entry], seed, 2 * len(kinds)), argument)
    assert {*found[: len(kinds)]} == {*found[len(kinds) :]} == kinds


@given(SEEDS)
@settings(max_examples=30)
def test_a_clock_drifts_and_strobes_once_in_six_faults(seed):
    kinds = Counter(of(scheduled(["clock"], seed, 6), "kind"))
    assert kinds == {"jump": 4, "drift": 1, "strobe": 1}


@SOURCES
@given(SEEDS)
@settings(max_examples=15)
def test_entries_of_a_family_alternate_by_their_weights(source, seed):
    found = source(["http:client-1/500=3", "http:client-2/500"], seed, 8)
    clients = [fault.targets[0] for fault in found]
    assert {*Counter(clients[:4]).items()} == {*Counter(clients[4:]).items()}
    assert Counter(clients[:4]) == {"client-1": 3, "client-2": 1}


@SOURCES
def test_in_the_long_run_each_kind_of_http_comes_as_often_as_ever(source):
    many = 8 * 25
    found = Counter(of(source(["http"], 7, many), "kind"))
    assert found == dict.fromkeys(HTTP_KINDS, many / 8)


def test_in_the_long_run_cuts_of_the_holder_come_as_often_as_ever():
    found = [one for one in triggered(["partition"], 7, 1400) if HOLDER in one.targets]
    cuts = Counter((one.arguments["how"], one.arguments.get("lost")) for one in found)
    for cut, weight in partition._CUTS.items():
        assert cuts[cut] / len(found) == pytest.approx(weight / 10, abs=0.01)


@given(SEEDS)
@settings(max_examples=50)
def test_two_cuts_of_the_holder_leave_requests_unanswered_once_past_the_lease(seed):
    triggers = islice(draws(["partition"], seed, AT), 30)
    cuts = [one for one in triggers if HOLDER in one.strike[-1].targets][:4]
    unanswered = [one for one in cuts if one.strike[-1].arguments["how"] == "drop"]
    assert 1 <= len(unanswered) < 4
    assert any(one.lasts_s >= 1.25 * AT.ttl_s for one in unanswered)


@given(SEEDS)
@settings(max_examples=10)
def test_an_entry_that_never_finds_room_does_not_keep_the_others_waiting(seed):
    entries = ["kill:redis-1/never@1s", "cpu:redis-1", "cpu:redis-2"]
    faults = draw(entries, seed, 600, 5, AT)
    (gone,) = [one for one in faults if one.family == "kill"]
    limited = [one.targets for one in faults if one.family == "cpu" and one.at_s > gone.at_s]
    assert len(limited) >= (600 - gone.at_s) // 20
    assert limited.count(["redis-1"]) == 0


@given(SEEDS)
@settings(max_examples=10)
def test_a_kind_that_has_to_wait_a_little_keeps_its_turn(seed):
    """A server that is cut off from the others has its clock left alone meanwhile."""
    faults = draw(["partition", "clock@40s"], seed, 400, 3, AT)
    shapes = of([one for one in faults if one.family == "partition"], "shape")
    many = len(possible(AT))
    assert sorted(shapes[:many]) == sorted(possible(AT))


def test_a_trigger_longer_than_half_of_the_run_is_left_out():
    at = replace(AT, bound_s=60.0)
    long = [one.lasts_s > 60 for one in islice(draws(["partition"], 7, at), 100)]
    assert any(long)
    short = replace(at, time_s=60.0)
    assert not any(one.lasts_s > 30 for one in islice(draws(["partition"], 7, short), 100))


def test_the_kind_of_a_fault_that_is_drawn_alone_follows_its_own_chance():
    drawn = [http.draw(Random(seed), AT, Asked("http"))[0] for seed in range(200)]
    assert {one.arguments["kind"] for one in drawn} == HTTP_KINDS
