"""How many steps the search takes for given histories, exactly.

A search that prunes less gives the same verdicts and takes longer, which no test of verdicts
notices. So this file records the effort for fixed random histories. A change of the algorithm
changes it: compare, and if the change is intended, record the numbers that the failed test prints.

The same holds for evidence: a search for the first failure or for a small sub-history that skips
a step still ends at a right one, later, or at a larger one.
"""

from random import Random

import pytest

from fencepost.checker.lincheck import Online, check, failure, linearize, shrink
from fencepost.checker.lincheck.budget import UNLIMITED
from fencepost.checker.lincheck.failure import first_failure
from fencepost.checker.lincheck.linearize import Walk, relaxed, widening
from fencepost.checker.lincheck.operation import objects
from tests.checker.lincheck.lincheck_histories import SUBJECTS, history

pytestmark = pytest.mark.slow

SMALL = 30  # histories for each model
LARGE = 4


def histories(name, count, ops, **more):
    for seed in range(count):
        yield history(Random(f"effort {name} {seed}"), SUBJECTS[name], ops, **more)


def walked(operations, model, **more):
    walk = Walk.begin(operations, model, UNLIMITED, **more)
    walk.to_end()
    return walk.search


def turns(way):
    """Return (the effort that a way around crashed ops reports, the effort of its last search)."""
    total = 0
    try:
        while True:
            total += next(way)
    except StopIteration as end:
        return total, 0 if end.value is None else end.value[0].effort


def measured(name, all_histories):
    """Return efforts of the full search, of the two ways around crashed ops and of Online.

    Also return the number of known states at the end and of remaining configurations.
    """
    model = SUBJECTS[name].model()
    full = wide = loose = online = states = left = 0
    for events in all_histories:
        for operations in objects(enumerate(events, 1), model).parts.values():
            search = walked(operations, model)
            full += search.effort
            states += len(search.table.states) + sum(map(len, search.table.steps.values()))
            left += sum(map(len, search.configurations.values())) + len(search.crashed.counts)
            wide += sum(turns(widening(operations, model, UNLIMITED, False)))
            if name != "fifo-queue":
                loose += sum(turns(relaxed(operations, model, UNLIMITED, False)))
        checker = Online(model)
        for event in events:
            if checker.feed(event) is not True:
                break
        online += sum(one.search.effort for one in checker._objects.values())
    return full, states, left, wide, loose, online


EFFORT = {
    "register": (1078, 370, 95, 1092, 2234, 3037),
    "cas-register": (755, 435, 102, 595, 1582, 1542),
    "multi-register": (2518, 763, 110, 1129, 5942, 4060),
    "kv": (3002, 1778, 279, 2812, 103530, 7803),
    "set": (1168, 460, 79, 1684, 2512, 1324),
    "counter": (1488, 623, 91, 1171, 87419, 1569),
    "fifo-queue": (19066, 9332, 644, 8089, 0, 46944),
    "unordered-queue": (1450, 573, 103, 677, 106587, 1495),
    "mutex": (639, 149, 77, 934, 1611, 2321),
    "owner-mutex": (209, 197, 161, 209, 418, 159),
    "reentrant-mutex": (170, 172, 182, 170, 364, 137),
    "semaphore": (2055, 331, 126, 1826, 6036, 3393),
    "rw-lock": (363, 350, 192, 535, 822, 297),
    "fenced-mutex": (160, 182, 169, 160, 320, 106),
    "lease-mutex": (249, 297, 203, 419, 500, 198),
}


@pytest.mark.parametrize("name", SUBJECTS)
def test_small_histories_with_many_crashed_ops_take_this_effort(name):
    told = histories(name, SMALL, 14, processes=5, crash=0.35, spoil=0.4)
    assert measured(name, told) == EFFORT[name]


def registers(crash):
    model = SUBJECTS["cas-register"].model()
    for seed in range(LARGE):
        random = Random(f"{seed} {crash}")
        events = history(random, SUBJECTS["cas-register"], 200, processes=5, crash=crash, spoil=0)
        reads = [i for i, e in enumerate(events) if e["type"] == "ok" and e["f"] == "read"]
        if seed % 2:
            late = random.choice(reads[-len(reads) // 4 :])
            events[late]["value"] = (events[late]["value"] + 1) % 3
        [operations] = objects(enumerate(events, 1), model).parts.values()
        yield operations


LONG = {
    0.03: [5794, 3344, 5066, 1006, 2926, 1732, 3884, 1012],
    0.06: [3245, 2564, 4497, 4295, 6606, 3540, 3784, 3908],
    0.1: [3725, 3494, 876, 6144, 588, 3734, 697, 7144],
}


@pytest.mark.parametrize("crash", [0.03, 0.06, 0.1])
def test_long_histories_of_a_register_take_this_effort(crash):
    model = SUBJECTS["cas-register"].model()
    found = []
    for operations in registers(crash):
        found.append(sum(turns(widening(operations, model, UNLIMITED, False))))
        found.append(sum(turns(relaxed(operations, model, UNLIMITED, False))))
    assert found == LONG[crash]


# As LONG, where a stuck search soon drops all its state and restarts.
SHORT = {
    0.03: [(2153, 1690), (2492, 486), (1768, 457), (1806, 504)],
    0.06: [(2012, 628), (2620, 585), (2819, 2099), (2728, 729)],
    0.1: [(2956, 732), (0, 876), (0, 588), (0, 697)],
}


@pytest.mark.parametrize("crash", [0.03, 0.06, 0.1])
def test_a_search_that_begins_again_with_more_room_takes_this_effort(crash, monkeypatch):
    monkeypatch.setattr(linearize, "WIDER", ((1, 1, 1), (2, 20, 5)))
    monkeypatch.setattr(linearize, "WIDTHS", (2, 20, None))
    assert restarted(crash) == SHORT[crash]


def restarted(crash):
    model = SUBJECTS["cas-register"].model()
    return [turns(widening(operations, model, UNLIMITED, False)) for operations in registers(crash)]


# Return (ops left, histories tried on the way) of all sub-histories.
SHRUNK = {
    "register": (37, 239),
    "cas-register": (42, 277),
    "multi-register": (24, 246),
    "kv": (113, 196),
    "set": (98, 311),
    "counter": (72, 121),
    "fifo-queue": (88, 616),
    "unordered-queue": (36, 240),
    "mutex": (49, 516),
    "owner-mutex": (46, 387),
    "reentrant-mutex": (49, 448),
    "semaphore": (47, 361),
    "rw-lock": (50, 394),
    "fenced-mutex": (51, 400),
    "lease-mutex": (52, 341),
}


@pytest.mark.parametrize("name", SUBJECTS)
def test_shrinking_takes_this_effort_and_leaves_this_number_of_ops(name, monkeypatch):
    explored = recorded_by(shrink, monkeypatch)
    model = SUBJECTS[name].model()
    left = 0
    for seed in range(SMALL):
        random = Random(f"shrink {name} {seed}")
        events = history(random, SUBJECTS[name], 30, processes=4, crash=0.1, spoil=0.9)
        verdict = check(events, model)
        if verdict.valid is False:
            operations = verdict.parts[verdict.key]
            failed = first_failure(operations, model, UNLIMITED, verdict.failed or verdict.near)
            small = shrink.shrink(operations, failed, model, UNLIMITED)
            assert small.minimal
            left += len(small.operations)
    assert (left, len(explored)) == SHRUNK[name]


def recorded_by(module, monkeypatch):
    """Return the positions up to which this module explores from now on."""
    positions = []
    explore_up_to = module.explore_up_to

    def recorded(operations, position, *more, **named):
        positions.append(position)
        return explore_up_to(operations, position, *more, **named)

    monkeypatch.setattr(module, "explore_up_to", recorded)
    return positions


@pytest.mark.parametrize(
    ("bad", "near", "tried"),
    [
        (20, 23, [23, 22, 20, 16, 18, 19]),
        (20, 17, [17, 18, 20, 19]),
        (20, 20, [20, 19]),
        (0, 39, [38, 37, 35, 31, 23, 7, 3, 1, 0]),
        (39, 0, [0, 1, 3, 7, 15, 31, 35, 37, 38]),
        (1, 2, [2, 1, 0]),
        (39, 36, [36, 37, 38]),
    ],
)
def test_the_first_failure_is_sought_in_growing_steps_and_then_by_bisection(
    bad, near, tried, monkeypatch
):
    events = [
        {"process": 0, "type": type, "f": "write", "value": n}
        for n in range(40)
        for type in ("invoke", "ok")
    ]
    for event in events[2 * bad : 2 * bad + 2]:
        event.update(f="read", value=99)
    verdict = check(events, "register", fast=False)
    operations = verdict.parts[None]
    explored = recorded_by(failure, monkeypatch)
    assert first_failure(operations, verdict.model, UNLIMITED, operations[near]) == operations[bad]
    assert [position // 2 for position in explored] == tried
