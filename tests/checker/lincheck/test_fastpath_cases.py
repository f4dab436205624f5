"""Fast paths on few ops in any interleaving, compared with trying every order."""

from random import Random

import pytest

from fencepost.checker.lincheck.fastpaths import BY_MODEL
from fencepost.checker.lincheck.model import Model
from fencepost.checker.lincheck.models import named
from fencepost.checker.lincheck.operation import Operation, objects
from tests.checker.lincheck.lincheck_oracle import linearizable


def writes(*values):
    return [("write", value, value) for value in values]


def reads(*values):
    return [("read", None, value) for value in values]


def adds(*values):
    return [("add", value, value) for value in values]


def queued(text):
    """Parse `+1 -1 -`: an enqueue of 1, a dequeue of 1, and one that finds the queue empty."""
    for op in text.split():
        value = int(op[1:]) if op[1:] else None
        yield ("enqueue", value, value) if op[0] == "+" else ("dequeue", None, value)


# Return the ops of one history, each by a process of its own.
OPS = {
    "register": [
        [*writes(1, 2), *reads(1, 1)],
        [*writes(1, 2), *reads(1, 2)],
        [*writes(1), *reads(0, 0, 1)],
        [*writes(1, 2), *reads(0, 1, 2)],
        [*writes(1, 2, 3), *reads(1, 1)],
        [*writes(1), *reads(1, 2)],
    ],
    "set": [
        [*adds(1, 2), *reads([1], [1, 2])],
        [*adds(1), *reads([], [1], [1])],
        [*adds(1, 2), *reads([1], [2])],
        [*adds(1, 2, 3), *reads([1, 2], [1, 2, 3])],
        [*adds(1, 2), *reads([], [2])],
        [*adds(1), *reads([2])],
    ],
    "fifo-queue": [
        list(queued(text))
        for text in (
            "+1 +2 -1 -2", "+1 +2 -2", "+1 -1 -", "+1 +2 -1 - -2", "+1 -", "+1 -1 -1", "+1 -2",
            "+1 +2 +3 -1 -3", "+1 -1 +2 -2 -",
        )
    ],
}  # fmt: skip


def history(random, ops):
    """Draw these ops, each invoked and returned at any position; some never return."""
    waiting = random.sample(range(len(ops)), len(ops))
    never = {process for process in waiting if random.random() < 0.15}
    begun = []
    while waiting or begun:
        if waiting and (not begun or random.random() < 0.55):
            process = waiting.pop()
            yield {"process": process, "type": "invoke", "f": ops[process][0],
                   "value": ops[process][1]}  # fmt: skip
            begun.append(process)
        else:
            process = begun.pop(random.randrange(len(begun)))
            if process not in never:
                yield {"process": process, "type": "ok", "f": ops[process][0],
                       "value": ops[process][2]}  # fmt: skip


def quick(events, model: Model):
    found = objects(enumerate(events, 1), model).parts.get(None, [])
    return BY_MODEL[model.name](found, model)


@pytest.mark.parametrize("name", OPS)
def test_a_fast_path_agrees_with_trying_every_order(name):
    model = named(name, 0 if name == "register" else None)
    told = []
    for index, ops in enumerate(OPS[name]):
        random = Random(f"{name} {index}")
        for _ in range(500):
            events = list(history(random, ops))
            verdict = quick(events, model)
            if verdict is not None:
                assert verdict is linearizable(events, model), events
                told.append(verdict)
    assert 0.1 < sum(told) / len(told) < 0.9
    assert len(told) > 0.8 * 500 * len(OPS[name])


def test_two_overlapping_holds_are_reported_with_the_second_grant():
    model = named("owner-mutex")
    refused = granted = 0
    for seed in range(1500):
        random = Random(seed)
        events, state = [], {}
        while len(events) < 12:
            process = random.randrange(3)
            kind, f = state.get(process, ("ok", "release"))
            if kind == "invoke":
                kind = random.choices(["ok", "info"], [9, 1])[0]
            elif kind == "info":
                continue
            else:
                kind, f = "invoke", "release" if f == "acquire" else "acquire"
                if f == "acquire" and any(s == ("ok", "acquire") for s in state.values()):
                    f = "acquire" if random.random() < 0.3 else None
            if f is None:
                continue
            state[process] = kind, f
            events.append({"process": process, "type": kind, "f": f, "value": None})
            if all(own[0] == "info" for own in state.values()) and len(state) == 3:
                break
        verdict = quick(events, model)
        assert verdict is not None
        granted += verdict is True
        if isinstance(verdict, Operation):
            refused += 1
            assert not linearizable(events[: verdict.returned + 1], model)
            assert linearizable(events[: verdict.returned], model)
        else:
            assert linearizable(events, model)
    assert refused > 300
    assert granted > 300


def lock(*steps):
    events = [
        {"process": process, "type": kind, "f": f, "value": None}
        for process, text in steps
        for f, kind in [text.split()]
    ]
    return quick(events, named("owner-mutex"))


def test_a_process_that_does_not_alternate_is_left_to_the_engine():
    def whole(process, f):
        return [(process, f"{f} invoke"), (process, f"{f} ok")]

    assert lock(*whole(1, "acquire"), *whole(1, "release"), *whole(2, "acquire")) is True
    assert lock(*whole(1, "release")) is None
    assert lock((1, "release invoke")) is True  # it may never have happened
    assert lock(*whole(1, "acquire"), *whole(1, "acquire")) is None
    gone = [(1, "acquire invoke"), (1, "acquire info")]
    assert lock(*gone, (1, "release invoke")) is None
    assert lock(*gone, *whole(2, "acquire")) is True
    assert quick([], named("owner-mutex", 7)) is None
    assert quick([], named("fifo-queue", [1])) is None


def test_a_value_enqueued_twice_is_left_to_the_engine():
    for name, f in (("register", "write"), ("set", "add"), ("fifo-queue", "enqueue")):
        one = [{"process": 1, "type": kind, "f": f, "value": 5} for kind in ("invoke", "ok")]
        assert quick(one, named(name)) is True
        assert quick(one * 2, named(name)) is None
        start = 5 if name == "register" else [5]
        assert quick(one, named(name, start)) is None


def test_an_open_dequeue_may_have_taken_the_missing_value():
    def queue(*steps):
        events = [
            {"process": process, "type": kind, "f": f, "value": value}
            for process, kind, f, value in steps
        ]
        return quick(events, named("fifo-queue"))

    two = [(1, "invoke", "enqueue", 1), (1, "ok", "enqueue", 1),
           (1, "invoke", "enqueue", 2), (1, "ok", "enqueue", 2)]  # fmt: skip
    second = [(2, "invoke", "dequeue", None), (2, "ok", "dequeue", 2)]
    assert queue(*two, *second) is False
    assert queue(*two, (3, "invoke", "dequeue", None), *second) is None
    assert queue(*two, (3, "invoke", "dequeue", None)) is True
