"""The generator depends on its seed, time and answers alone, and completes each section."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fencepost.workloads.client.critical_section import GIVE_UP, SPARE, CriticalSection, Settings

TTL_NS = Settings().ttl_ns
TTL_S = TTL_NS / 1e9
MIX = Settings(
    hold_ms=(0, 1600 * TTL_S), think_ms=(0, 1000 * TTL_S), contention=(1, 5), clients=5, extend=None
)
ANSWERS = {
    "acquire": {"hold": "h1", "token": 1, "deadline": 5},
    "extend": {"deadline": 9},
    "read": {"value": "x", "version": 3},
    "write": {"stored": 4},
    "release": {},
    GIVE_UP: {"lost": True, "deadline": None},
}
ENDS = st.lists(st.sampled_from(["ok", "ok", "ok", "fail", "info"]), min_size=1, max_size=30)


def play(section, ends, answers=ANSWERS):
    """Return its ops, where each completes in no time as `ends` has it."""
    return [step for _, step in timed(section, ends, answers)]


def timed(section, ends, answers=ANSWERS):
    """Return its ops, and when each is invoked, in s."""
    now = 0
    steps = [section.first(now)]
    found = []
    for type in ends:
        step = steps[-1]
        now += round(step.after_s * 1e9)
        found.append((now / 1e9, step))
        given_up = step.f == GIVE_UP
        value = step.value | (answers[step.f] if type == "ok" or given_up else {})
        steps.append(section.next(step.f, "ok" if given_up else type, value, now))
    return [*found, (now / 1e9 + steps[-1].after_s, steps[-1])]


def sections(found):
    """Return the steps with their times, in sections: each from its acquire to its release."""
    rows = []
    for at, step in found:
        if step.f == "acquire":
            rows.append([])
        rows[-1].append((at, step))
    return [row for row in rows if row[-1][1].f == "release"]


def names(steps):
    return [step.f for step in steps]


@given(st.text(max_size=5), ENDS, st.sampled_from([Settings(), MIX]))
@settings(max_examples=60)
def test_the_same_seed_and_the_same_answers_give_the_same_ops(seed, ends, chosen):
    same = [play(CriticalSection(chosen, seed), ends) for _ in range(2)]
    assert same[0] == same[1]


def test_another_seed_gives_other_waits():
    runs = {CriticalSection(Settings(), str(seed)).first(0).after_s for seed in range(9)}
    assert len(runs) == 9


def test_a_section_acquires_reads_writes_and_releases_and_then_repeats():
    steps = play(CriticalSection(Settings(extend=0), "s"), ["ok"] * 4)
    assert names(steps) == ["acquire", "read", "write", "release", "acquire"]
    assert [step.value for step in steps[:4]] == [
        {"lock": "orders", "ttl": 2_000_000_000},
        {"resource": "account", "hold": "h1"},
        {"resource": "account", "version": 3, "hold": "h1"},
        {"lock": "orders", "hold": "h1"},
    ]


def test_of_several_locks_a_section_takes_one_and_uses_its_resource():
    section = CriticalSection(Settings(locks=3, extend=0.5), "s")
    taken = set()
    lock, resource = "", ""
    for step in play(section, ["ok", "fail", "ok", "ok", "ok", "ok", "info"] * 60):
        if step.f == "acquire":
            lock = step.value["lock"]
            resource = lock.replace("orders", "account")
            taken.add((lock, resource))
        assert step.value.get("lock", lock) == lock
        assert step.value.get("resource", resource) == resource
    assert taken == {(f"orders-{n}", f"account-{n}") for n in (1, 2, 3)}


def test_the_lock_to_acquire_is_drawn_from_the_seed():
    def locks(seed):
        steps = play(CriticalSection(Settings(locks=5, write=False), seed), ["ok"] * 40)
        return [step.value["lock"] for step in steps]

    assert locks("1") == locks("1") != locks("2")


def test_a_holder_that_extends_does_so_once_before_it_releases():
    steps = play(CriticalSection(Settings(extend=1), "s"), ["ok"] * 4)
    assert sorted(names(steps[1:4])) == ["extend", "read", "write"]
    assert steps[4].f == "release"
    extend = next(step for step in steps if step.f == "extend")
    assert extend.value == {"lock": "orders", "hold": "h1", "ttl": 2_000_000_000}


def test_without_a_resource_a_lock_is_taken_and_released():
    steps = play(CriticalSection(Settings(write=False, extend=1), "s"), ["ok"] * 2)
    assert names(steps) == ["acquire", "release", "acquire"]


@given(st.text(max_size=5), ENDS, st.sampled_from([Settings(extend=0.5), MIX]))
@settings(max_examples=100)
def test_whatever_is_answered_a_hold_is_released_before_the_next_request(seed, ends, chosen):
    """The exception is a dead process: `info` makes its successor start over."""
    steps = play(CriticalSection(chosen, seed), ends)
    holding = False
    for step, type, following in zip(steps, ends, steps[1:], strict=False):
        if type == "info" and step.f != GIVE_UP:
            assert following.f == "acquire"
            holding = False
            continue
        if step.f == "acquire":
            holding = type == "ok"
        elif step.f == "release":
            holding = False
        if type == "fail" and holding and step.f != GIVE_UP:
            assert following.f == "release"
        assert (following.f != "acquire") is holding


@pytest.mark.parametrize("f", ["extend", "read", "write"])
def test_a_holder_that_is_refused_releases_its_hold(f):
    step = CriticalSection(Settings(), "s").next(f, "fail", {"hold": "h7"}, 0)
    assert (step.f, step.value) == ("release", {"lock": "orders", "hold": "h7"})


LENGTHS = st.tuples(st.floats(0, 9000), st.floats(0, 9000)).map(sorted)


@given(st.integers(), LENGTHS, LENGTHS)
@settings(max_examples=200)
def test_holds_and_rests_are_as_long_as_was_chosen(seed, hold_ms, think_ms):
    chosen = Settings(hold_ms=hold_ms, think_ms=think_ms, extend=None)
    found = timed(CriticalSection(chosen, str(seed)), ["ok"] * 30)
    for row in sections(found):
        held_ms = (row[-1][0] - row[0][0]) * 1000
        assert hold_ms[0] - 0.01 <= held_ms <= hold_ms[1] + 0.01
    for (_, step), (_, following) in pairwise(found):
        if step.f == "release":
            assert think_ms[0] - 0.01 <= following.after_s * 1000 <= think_ms[1] + 0.01


def test_the_mix_has_holds_of_every_kind_with_and_without_extensions_and_writes_early_and_late():
    found = sections(timed(CriticalSection(MIX, "mix"), ["ok"] * 4000))
    leases, extended, written = [], set(), []
    for row in found:
        at = {step.f: when - row[0][0] for when, step in row}
        length = at["release"] / TTL_S
        leases.append(length)
        if length > 0.9:
            extended.add("extend" in at)
            if "write" in at:
                written.append(at["write"] / TTL_S)
    assert min(leases) < 0.01 and max(leases) > 1.5
    assert sum(0.7 < one < 1.1 for one in leases) > len(leases) / 12
    assert sum(one > 1.1 for one in leases) > len(leases) / 12
    assert extended == {False, True}
    assert min(written) < 0.1 and max(written) > 0.8


@given(st.integers())
@settings(max_examples=50)
def test_a_client_that_holds_past_the_lease_reports_the_loss_in_time_and_then_writes_nothing(seed):
    for row in sections(timed(CriticalSection(MIX, str(seed)), ["ok"] * 200)):
        begun, gone = row[0][0], None
        for at, step in row:
            if step.f == "extend":
                begun = at
            over = at >= begun + (1 - SPARE / 2) * TTL_S
            if step.f == GIVE_UP:
                gone = at
                assert not over
            elif step.f == "release":
                assert gone is not None or not over
            else:
                assert gone is None and not over


def test_some_clients_hold_past_the_lease():
    ends = [
        (begun, at)
        for row in sections(timed(CriticalSection(MIX, "mix"), ["ok"] * 2000))
        for begun in [max(when for when, step in row if step is row[0][1] or step.f == "extend")]
        for at, step in row
        if step.f == "release"
    ]
    assert any(at > begun + TTL_S for begun, at in ends)
    assert any(at < begun + TTL_S for begun, at in ends)


def test_a_holder_whose_lease_is_renewed_continues_and_asks_again_before_its_next_end():
    chosen = Settings(hold_ms=(5 * 1000 * TTL_S,) * 2, think_ms=(0, 0), extend=0, write=False)
    section = CriticalSection(chosen, "s")
    section.first(0)
    step = section.next("acquire", "ok", ANSWERS["acquire"], 0)
    assert (step.f, step.after_s) == (GIVE_UP, pytest.approx((1 - SPARE) * TTL_S))
    renewed = step.value | {"lost": False, "deadline": 3 * TTL_NS}
    step = section.next(GIVE_UP, "ok", renewed, TTL_NS)
    assert (step.f, step.after_s) == (GIVE_UP, pytest.approx((2 - SPARE) * TTL_S))
    endless = step.value | {"lost": False, "deadline": None}
    step = section.next(GIVE_UP, "ok", endless, 3 * TTL_NS)
    assert (step.f, step.after_s) == ("release", pytest.approx(2 * TTL_S))


def test_a_paused_client_does_not_check_the_clock():
    """Otherwise no run would show the data that a resource without a guard loses."""
    section = CriticalSection(Settings(extend=0), "s")
    section.first(0)
    section.next("acquire", "ok", ANSWERS["acquire"], 100 * TTL_NS)
    step = section.next("read", "ok", {"hold": "h1", "version": 1}, 200 * TTL_NS)
    assert (step.f, step.after_s) == ("write", 0)


def begun(client, contention, until_s=200.0):
    """Return when a client starts a section, in s."""
    chosen = Settings(
        hold_ms=(0, 0), think_ms=(100, 100), contention=contention, clients=5, client=client,
        shared_seed="7", write=False,
    )  # fmt: skip
    found = timed(CriticalSection(chosen, f"7/{client}/work"), ["ok"] * 5000)
    return [at for at, step in found if step.f == "acquire" and at < until_s]


@pytest.mark.parametrize("contention", [(1, 5), (2, 3), (5, 5)])
def test_as_many_clients_as_were_chosen_begin_in_each_phase(contention):
    phases = {}
    for client in range(5):
        for at in begun(client, contention):
            phases.setdefault(int(at // (2 * TTL_S)), set()).add(client)
    many = {len(clients) for clients in phases.values()}
    assert many == set(range(contention[0], contention[1] + 1))


def test_a_refused_client_retries_soon_in_turn_or_not():
    steps = play(CriticalSection(MIX, "s"), ["fail"] * 50)
    assert all(step.f == "acquire" and step.after_s <= 0.02 for step in steps[1:])


def test_without_contention_there_is_hardly_any_wait():
    chosen = Settings(**{**vars(MIX), "calm_ns": 50 * TTL_NS})
    found = timed(CriticalSection(chosen, "s"), ["ok"] * 2000)
    assert found[-1][0] > 50 * TTL_S
    late = [step for at, step in found if at - step.after_s >= 50 * TTL_S]
    assert late and all(step.after_s <= 0.005 for step in late)
    assert GIVE_UP not in names(late)


def test_a_holder_of_a_reentrant_lock_acquires_it_again_and_goes_on_with_its_first_hold():
    section = CriticalSection(Settings(again=1, extend=0), "s")
    holds = iter(("first", "second", "third", "fourth"))
    now, step, steps = 0, section.first(0), []
    for _ in range(12):
        steps.append(step)
        answer = ANSWERS[step.f] | ({"hold": next(holds)} if step.f == "acquire" else {})
        now += round(step.after_s * 1e9)
        step = section.next(step.f, "ok", step.value | answer, now)
        if [one.f for one in steps].count("release") == 2:
            break
    names_of = [one.f for one in steps]
    assert sorted(names_of) == ["acquire", "acquire", "read", "release", "release", "write"]
    released = [one.value["hold"] for one in steps if one.f == "release"]
    assert released == ["second", "first"]
    assert {one.value["hold"] for one in steps if one.f in ("read", "write")} == {"first"}


def test_a_holder_that_is_refused_a_second_time_goes_on():
    section = CriticalSection(Settings(again=1, extend=0), "s")
    steps = play(section, ["ok", "ok", "ok", "ok", "ok"])
    again = next(place for place, one in enumerate(steps[1:], 1) if one.f == "acquire")
    ends = ["ok"] * again + ["fail"] + ["ok"] * 4
    steps = play(CriticalSection(Settings(again=1, extend=0), "s"), ends)
    assert sorted(names(steps[:5])) == ["acquire", "acquire", "read", "release", "write"]


def test_a_trusting_holder_reads_waits_for_its_hold_and_writes_whatever_its_lease():
    chosen = Settings(hold_ms=(3000 * TTL_S, 3000 * TTL_S), extend=1.0, trusting=1.0)
    for section in sections(timed(CriticalSection(chosen, "1"), ["ok"] * 20)):
        assert names(step for _, step in section) == ["acquire", "read", "write", "release"]
        acquired, read, written, released = (at for at, _ in section)
        assert acquired == read and written == released == pytest.approx(acquired + 3 * TTL_S)


def test_without_trusting_holders_the_ops_are_those_of_the_seed_as_before():
    plain, none = (CriticalSection(one, "7") for one in (MIX, replace(MIX, trusting=0.0)))
    assert play(plain, ["ok"] * 40) == play(none, ["ok"] * 40)
