"""The engine agrees with trying every order, for every model."""

from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fencepost.checker.lincheck import Online, check, linearize, verify
from fencepost.checker.lincheck.budget import UNLIMITED, Budget
from fencepost.checker.lincheck.crashed import Crashed, faults
from fencepost.checker.lincheck.evidence import steps_of
from fencepost.checker.lincheck.linearize import (
    END,
    FEW,
    Walk,
    explore,
    explore_up_to,
    relaxed,
    widening,
)
from fencepost.checker.lincheck.model import Action
from fencepost.checker.lincheck.operation import objects
from fencepost.checker.lincheck.pruning import connected
from tests.checker.lincheck.lincheck_histories import SUBJECTS, history
from tests.checker.lincheck.lincheck_oracle import linearizable

pytestmark = pytest.mark.slow

ENDLESS = ("counter", "kv", "fifo-queue", "unordered-queue")  # repeated ops lead to ever new states
QUICK = settings(max_examples=40, suppress_health_check=list(HealthCheck))


@pytest.mark.parametrize("name", SUBJECTS)
@QUICK
@given(seed=st.integers(0, 1 << 40))
def test_the_engine_agrees_with_brute_force(name, seed):
    random = Random(seed)
    subject = SUBJECTS[name]
    failed_release = random.choice(["nothing", "ended"])
    events = history(random, subject, random.randrange(1, 7), failed_release=failed_release)
    model = subject.model(failed_release)
    expected = linearizable(events, model)
    assert check(events, model, fast=False).valid is expected
    assert check(events, model, fast=False, partition=False).valid is expected
    assert check(events, model).valid is expected


@pytest.mark.parametrize("name", SUBJECTS)
def test_both_verdicts_are_well_represented_and_right(name):
    random = Random(name)
    subject = SUBJECTS[name]
    verdicts = []
    for _ in range(100):
        events = history(random, subject, 7, processes=4)
        model = subject.model()
        expected = linearizable(events, model)
        verdicts.append(expected)
        verdict = check(events, model)
        assert verdict.valid is expected, events
        evidence = verdict.evidence()
        assert evidence.complete
        if expected:
            for key, steps in evidence.linearizations.items():
                assert verify(verdict.parts[key], steps, model) is None
        else:
            assert evidence.small.minimal
            for partial in evidence.partials:  # steps without an operation are ends of leases
                taken = [step.operation.id for step in partial.steps if step.operation]
                assert len(taken) == len(set(taken))
    assert 0.15 < sum(verdicts) / len(verdicts) < 0.95


@pytest.mark.parametrize("name", SUBJECTS)
@QUICK
@given(seed=st.integers(0, 1 << 40))
def test_online_says_false_at_the_first_event_that_makes_it_so(name, seed):
    random = Random(seed)
    subject = SUBJECTS[name]
    events = history(random, subject, random.randrange(1, 6))
    online = Online(subject.model())
    for count, event in enumerate(events, 1):
        expected = linearizable(events[:count], subject.model())
        assert online.feed(event) is expected
        if not expected:
            break


@pytest.mark.parametrize("name", SUBJECTS)
@settings(QUICK, max_examples=25)
@given(seed=st.integers(0, 1 << 40))
def test_both_ways_around_crashed_ops_and_their_turns_come_to_the_verdict_of_the_full_search(
    name, seed
):
    random = Random(seed)
    model = SUBJECTS[name].model()
    events = history(random, SUBJECTS[name], 14, processes=5, crash=0.4, spoil=0.7)
    for operations in objects(enumerate(events, 1), model).parts.values():
        full = Walk.begin(operations, model, UNLIMITED).to_end()
        assert (explore(operations, model, UNLIMITED)[1] is None) is (full is None)
        for way in (widening, relaxed) if name != "fifo-queue" else (widening,):
            trace = random.random() < 0.5
            answer = last(way(operations, model, UNLIMITED, trace))
            if answer is None:
                assert way is relaxed and name in ENDLESS
                continue
            search, failed = answer
            assert (failed is None) is (full is None), way
            if trace and failed is None:
                (_, path), *_ = next(iter(search.configurations.values()))
                assert verify(operations, steps_of(path, operations), model) is None


def last(way):
    """Return the result of a way around crashed ops."""
    try:
        while True:
            next(way)
    except StopIteration as end:
        return end.value


def test_both_ways_agree_on_registers_with_dozens_of_crashed_ops_and_a_late_read_spoilt():
    model = SUBJECTS["cas-register"].model()
    refined = set()
    for seed in range(150):
        random = Random(seed)
        crash = random.choice([0.03, 0.05, 0.1])
        events = history(random, SUBJECTS["cas-register"], 200, processes=5, crash=crash, spoil=0)
        reads = [i for i, e in enumerate(events) if e["type"] == "ok" and e["f"] == "read"]
        late = random.choice(reads[-len(reads) // 4 :])
        events[late]["value"] = (events[late]["value"] + 1) % 3
        [operations] = objects(enumerate(events, 1), model).parts.values()
        search, failed = last(relaxed(operations, model, UNLIMITED, True))
        _, other = last(widening(operations, model, UNLIMITED, False))
        assert (failed is None) is (other is None), seed
        if failed is None:
            (_, path), *_ = next(iter(search.configurations.values()))
            assert verify(operations, steps_of(path, operations), model) is None
        if search.crashed.counted:
            refined.add(failed is None)
    assert refined == {True, False}, "no history hung on how often a crashed op was used"


@pytest.mark.parametrize("counted", [frozenset(), None], ids=["uncounted", "counted"])
def test_a_class_that_all_have_used_up_may_be_used_again_only_if_it_is_not_counted(counted):
    crashed = Crashed(SUBJECTS["cas-register"].model(), counted)
    crashed.want(Action("read", result=1))
    crashed.add(7, Action("write", 1))
    [(_, _, unit)] = crashed.moves(0, 0, False)
    common, over = crashed.spent([unit])
    assert common == unit
    moves = crashed.moves(0, unit - common, False)
    if counted is None:
        assert (over, moves) == ([7], [])
    else:
        assert over == []
        [(_, number, unit)] = moves
        assert (number, faults(unit)) == (7, 1)
        assert crashed.moves(0, unit, False) == [(0, 7, 0)]


def test_a_crashed_write_that_was_read_may_be_overwritten_at_once():
    events = [
        {"process": 0, "type": "invoke", "f": "write", "value": 1},
        {"process": 0, "type": "info", "f": "write", "value": 1},
        {"process": 1, "type": "invoke", "f": "read", "value": None},
        {"process": 2, "type": "invoke", "f": "write", "value": 2},
        {"process": 2, "type": "ok", "f": "write", "value": 2},
        {"process": 1, "type": "ok", "f": "read", "value": 1},
        {"process": 2, "type": "invoke", "f": "read", "value": None},
        {"process": 2, "type": "ok", "f": "read", "value": 2},
    ]
    model = SUBJECTS["cas-register"].model()
    assert check(events, model, fast=False).valid is True
    online = Online(model)
    assert all(online.feed(event) for event in events)


@pytest.mark.parametrize("needed", [1, 2])
def test_a_crashed_op_is_not_taken_more_often_than_it_was_invoked(needed):
    events = [
        {"process": 0, "type": "invoke", "f": "write", "value": 1},
        {"process": 0, "type": "info", "f": "write", "value": 1},
    ]
    for f, value in [("write", 2), ("read", 1)] * needed:
        given = value if f == "write" else None
        events.append({"process": 1, "type": "invoke", "f": f, "value": given})
        events.append({"process": 1, "type": "ok", "f": f, "value": value})
    model = SUBJECTS["cas-register"].model()
    [operations] = objects(enumerate(events, 1), model).parts.values()
    endless = Walk.begin(operations, model, UNLIMITED, counted=frozenset())
    assert endless.to_end() is None
    assert bool(endless.search.overused()) is (needed == 2)
    _, failed = last(relaxed(operations, model, UNLIMITED, False))
    assert failed == (operations[-1] if needed == 2 else None)
    verdict = check(events, model, fast=False)
    assert verdict.valid is (needed == 1)
    for partial in verdict.evidence().partials:
        assert None not in [step.operation for step in partial.steps]


def ways_up_to(position, events, monkeypatch, budget=UNLIMITED, **more):
    """Return the ways between which explore_up_to would take turns."""
    model = SUBJECTS["cas-register"].model()
    [operations] = objects(enumerate(events, 1), model).parts.values()
    ways = []
    with monkeypatch.context() as patch:
        patch.setattr(linearize, "_in_turns", ways.extend)
        explore_up_to(operations, position, model, budget, **more)
    return ways


def writes(count, kind):
    return [
        {"process": f"{kind} {n}", "type": type, "f": "write", "value": n % 3}
        for n in range(count)
        for type in ("invoke", kind)
    ]


def test_crashed_ops_are_left_uncounted_in_turns_only_in_histories_that_are_long(monkeypatch):
    for events, expected in (
        ([*writes(FEW, "ok"), *writes(1, "info")], 2),
        ([*writes(FEW - 1, "ok"), *writes(1, "info")], 1),
        (writes(FEW + 1, "ok"), 1),
    ):
        assert len(ways_up_to(END, events, monkeypatch)) == expected


@pytest.mark.parametrize("trace", [False, True])
def test_the_way_that_leaves_crashed_ops_uncounted_stops_at_the_given_operation(trace, monkeypatch):
    refused = [
        {"process": 0, "type": type, "f": "cas", "value": [7, 8]} for type in ("invoke", "ok")
    ]
    events = [*writes(1, "info"), *writes(FEW, "ok"), refused[0], *writes(1, "ok"), refused[1]]
    budget = Budget()
    for position, fails in ((len(events) - 2, False), (END, True)):
        _, uncounted = ways_up_to(position, events, monkeypatch, budget, trace=trace)
        search, failed = last(uncounted)
        assert search.relaxed
        assert (search.trace, search.budget is budget) == (trace, True)
        assert (failed is not None) is fails


def test_exploring_keeps_no_paths_unless_asked_to(monkeypatch):
    [way] = ways_up_to(END, writes(1, "ok"), monkeypatch)
    assert last(way)[0].trace is False


def test_ops_that_lead_to_a_read_through_other_registers_are_not_left_waiting():
    chain = [
        [["write", "c", 1], ["write", "d", 1]],
        [["read", "c", 1], ["write", "b", 1]],
        [["read", "b", 1], ["write", "a", 1]],
    ]
    events = [{"process": n, "type": "invoke", "f": "txn", "value": t} for n, t in enumerate(chain)]
    for type, seen in (("invoke", None), ("ok", 1)):
        events.append({"process": 9, "type": type, "f": "read", "value": ["a", seen]})
    events += [{**event, "type": "ok"} for event in events[:3]]
    assert check(events, "multi-register").valid is True


def test_cells_are_connected_by_ops_that_touch_several():
    def cells(*names):
        return [frozenset(name) for name in names]

    [start] = cells("a")
    assert connected(start, cells("cd", "bc", "ab", "xy", "e")) == {"a", "b", "c", "d"}
    assert connected(start, cells("xy", "b")) == {"a"}
    assert connected(start, [*cells("xy"), None]) is None


@pytest.mark.parametrize("name", SUBJECTS)
def test_swapping_two_results_is_noticed_when_it_matters(name):
    random = Random(f"swap {name}")
    subject = SUBJECTS[name]
    noticed = 0
    for _ in range(60):
        events = history(random, subject, 6, crash=0.05, spoil=0)
        model = subject.model()
        assert check(events, model).valid is True
        completions = [i for i, event in enumerate(events) if event["type"] == "ok"]
        if not completions:
            continue
        same = [
            (i, j)
            for i in completions
            for j in completions
            if i < j and events[i]["f"] == events[j]["f"]
        ]
        if same:
            i, j = random.choice(same)
            events[i], events[j] = (
                {**events[i], "value": events[j]["value"]},
                {**events[j], "value": events[i]["value"]},
            )
        drop = random.choice(completions)
        process = events[drop]["process"]
        began = max(
            i
            for i in range(drop + 1)
            if events[i]["process"] == process and events[i]["type"] == "invoke"
        )
        spoiled = [event for i, event in enumerate(events) if i not in (drop, began)]
        for mutant in (events, spoiled):
            expected = linearizable(mutant, model)
            assert check(mutant, model).valid is expected
            noticed += not expected
    assert noticed > 10


def test_a_search_that_goes_back_has_the_goals_of_the_place_it_goes_back_to(monkeypatch):
    monkeypatch.setattr(linearize, "CHECKPOINT", 1)
    monkeypatch.setattr(linearize, "WIDER", ((1, 3, 1), (2, 20, 5)))
    told = """0 put c, 1 append b, 1, 0, 1 append c, 1, 2 append a, 2, 0 get cbca, 1 append a, 0,
              0 append a, 0, 2 put b, 2, 1, 0 append b, 0, 1 get bb, 1"""
    events, asked = [], {}
    for process, *op in map(str.split, told.split(",")):
        f, text = asked[process] = op or asked[process]
        value = ["key", None if f == "get" and op else text]
        kind = "invoke" if op else "ok"
        events.append({"process": process, "type": kind, "f": f, "value": value})
    model = SUBJECTS["kv"].model()
    [operations] = objects(enumerate(events, 1), model).parts.values()
    assert last(widening(operations, model, UNLIMITED, False))[1] is None


@pytest.mark.parametrize("seed", [2, 16, 56, 103])
def test_a_long_history_of_a_key_with_crashed_ops_is_not_found_wrong_by_going_back(seed):
    events = history(Random(f"kv {seed}"), SUBJECTS["kv"], 200, processes=4, crash=0.03, spoil=0)
    assert check(events, SUBJECTS["kv"].model()).valid is True
