"""Each model accepts the same ops as a separate specification, and gives reasons for refusals."""

import pytest

from fencepost.checker.lincheck import UNKNOWN
from fencepost.checker.lincheck.model import Inconsistent
from fencepost.checker.lincheck.models import LOCKS, named
from tests.checker.lincheck.lincheck_specifications import NEVER, SPECS, call


def told_twice(spec, model):
    """Return each op as the specification and the model take it, with the steps that it spawns."""
    for op in spec.ops:
        action = model.action(op)
        f = "ended" if op.type == "fail" else op.f
        yield op.process, f, op.value, op.result, action
        timed = model.spawns(action) if model.spawns is not None else None
        if timed is not None:
            hold = (op.result if op.f == "acquire" else op.value).get("hold")
            value = {"hold": hold, "at": timed.at_ns}
            yield op.process, "expire", value, op.result, timed.action


@pytest.mark.parametrize("spec", SPECS, ids=lambda s: f"{s.name}-{s.init}-{s.failed_release}")
def test_a_model_takes_the_ops_that_its_specification_takes_and_has_as_many_states(spec):
    model = named(spec.name, spec.init, spec.failed_release)
    ops = list(told_twice(spec, model))
    pairs = {repr(spec.start): (model.initial, spec.start)}
    ahead = list(pairs.values())
    seen = {model.initial}
    for _ in range(spec.depth):
        now, ahead = ahead, []
        for state, told in now:
            for process, f, value, result, action in ops:
                after = model.step(state, action)
                expected = spec.after(told, process, f, value, result)
                assert isinstance(after, Inconsistent) is (expected is NEVER), (told, action)
                if expected is NEVER:
                    continue
                seen.add(after)
                if repr(expected) not in pairs:
                    pairs[repr(expected)] = after, expected
                    ahead.append((after, expected))
                assert pairs[repr(expected)][0] == after, (told, action)
    assert len(seen) == len(pairs)
    assert len(pairs) > 1


SILENT = [
    *((name, call(1, "release", type="fail")) for name in LOCKS),
    *((name, call(1, "acquire", {"ttl": 1}, type="fail")) for name in LOCKS),
    ("register", call(1, "write", 1, type="fail")),
    ("register", call(1, "read", type="info")),
    ("register", call(1, "read", None, UNKNOWN)),
    ("cas-register", call(1, "cas", [1, 2], type="fail")),
    ("cas-register", call(1, "cas", [1, 1], type="info")),
    ("multi-register", call(1, "txn", [["w", "x", 1]], type="fail")),
    ("multi-register", call(1, "txn", [["r", "x", 1]], type="info")),
    ("multi-register", call(1, "txn", [["r", "x", None]], [["r", "x", None]])),
    ("multi-register", call(1, "read", ["x", None], UNKNOWN)),
    ("kv", call(1, "put", ["a", "b"], type="fail")),
    ("kv", call(1, "get", "a", type="info")),
    ("kv", call(1, "get", "a", UNKNOWN)),
    ("set", call(1, "add", 1, type="fail")),
    ("set", call(1, "read", None, None)),
    ("set", call(1, "read", None, UNKNOWN)),
    ("set", call(1, "read", type="info")),
    ("counter", call(1, "add", 1, type="fail")),
    ("counter", call(1, "read", None, None)),
    ("counter", call(1, "read", None, UNKNOWN)),
    ("counter", call(1, "read", type="info")),
    ("fifo-queue", call(1, "enqueue", 1, type="fail")),
    ("fifo-queue", call(1, "dequeue", type="fail")),
    ("unordered-queue", call(1, "dequeue", type="fail")),
    ("unordered-queue", call(1, "dequeue", type="info")),
    ("unordered-queue", call(1, "dequeue", None, None)),
]


@pytest.mark.parametrize(("name", "silent"), SILENT)
def test_an_op_that_did_not_happen_or_saw_nothing_says_nothing(name, silent):
    assert named(name).action(silent) is None


@pytest.mark.parametrize(
    ("name", "init", "ops", "shown", "last", "why"),
    [
        ("register", 1, [], "1", call(1, "read", None, None), "can't read null from 1"),
        ("cas-register", 1, [], "1", call(1, "cas", [2, 3]), "can't CAS 1 from 2 to 3"),
        (
            "cas-register",
            1,
            [],
            "1",
            call(1, "cas", [1, 3], False),
            "can't fail to CAS 1 from 1 to 3: it matches",
        ),
        (
            "multi-register",
            {"y": 2, "x": 1},
            [],
            "{x: 1, y: 2}",
            call(1, "read", ["x", None], ["x", 3]),
            "can't read 3 from x: it is 1",
        ),
        (
            "multi-register",
            {"b": 2},
            [call(1, "write", [1, 5], [1, 5])],
            "{b: 2, 1: 5}",
            call(1, "read", [1, None], [1, 3]),
            "can't read 3 from 1: it is 5",
        ),
        (
            "kv",
            {"a": "bc"},
            [],
            "{a: 'bc'}",
            call(1, "get", "a", "b"),
            "can't read 'b' from 'a': it is 'bc'",
        ),
        ("kv", None, [], "{}", call(1, "get", "a", "b"), "can't read 'b' from 'a': it is ''"),
        (
            "set",
            [2, 1],
            [],
            "{1, 2}",
            call(1, "read", None, [1, 4, 3]),
            "can't read the set: 2 not in it, such as 3 and 1 missing, such as 2",
        ),
        (
            "set",
            [1],
            [],
            "{1}",
            call(1, "read", None, []),
            "can't read the set: 1 missing, such as 1",
        ),
        (
            "set",
            [1, "b"],
            [],
            "{'b', 1}",
            call(1, "read", None, [2, "a"]),
            "can't read the set: 2 not in it, such as 'a' and 2 missing, such as 'b'",
        ),
        ("counter", 4, [], "4", call(1, "read", None, 3), "can't read 3: it is 4"),
        (
            "fifo-queue",
            ["a", 2],
            [],
            "['a', 2]",
            call(1, "dequeue", None, 2),
            "can't dequeue 2: the head is 'a'",
        ),
        (
            "fifo-queue",
            [],
            [],
            "[]",
            call(1, "dequeue", None, 2),
            "can't dequeue 2: the queue is empty",
        ),
        (
            "unordered-queue",
            [1, "a", 1],
            [],
            "{'a' x 1, 1 x 2}",
            call(1, "dequeue", None, 3),
            "can't dequeue 3: it is not in the queue",
        ),
        ("mutex", None, [], "free", call(1, "release"), "can't release: it is free"),
        ("mutex", True, [], "held", call(1, "acquire"), "can't acquire: it is held"),
        ("owner-mutex", None, [], "free", call(1, "release"), "1 can't release: it is free"),
        ("owner-mutex", 7, [], "held by 7", call(1, "release"), "1 can't release: 7 holds it"),
        ("owner-mutex", 7, [], "held by 7", call(1, "acquire"), "1 can't acquire: 7 holds it"),
        (
            "reentrant-mutex",
            1,
            [call(5, "acquire")],
            "held 1 times by 5",
            call(1, "acquire"),
            "1 can't acquire: 5 holds it",
        ),
        (
            "reentrant-mutex",
            1,
            [call(5, "acquire")],
            "held 1 times by 5",
            call(5, "acquire"),
            "5 can't acquire: it holds it 1 times already",
        ),
        (
            "reentrant-mutex",
            None,
            [call(5, "acquire")] * 2,
            "held 2 times by 5",
            call(1, "release"),
            "1 can't release: 5 holds it",
        ),
        ("reentrant-mutex", None, [], "free", call(1, "release"), "1 can't release: it is free"),
        (
            "fenced-mutex",
            7,
            [],
            "free, last token 7",
            call(1, "acquire", None, {"token": 7}),
            "1 can't be granted token 7: 7 was granted before",
        ),
        (
            "fenced-mutex",
            None,
            [call(5, "acquire")],
            "held by 5",
            call(1, "acquire"),
            "1 can't acquire: 5 holds it",
        ),
        (
            "semaphore",
            3,
            [call(1, "acquire", 2)],
            "1 of 3 permits free",
            call(1, "acquire", 2),
            "can't acquire 2: 1 of 3 permits are free",
        ),
        (
            "semaphore",
            3,
            [call(1, "acquire", 2)],
            "1 of 3 permits free",
            call(1, "release", 3),
            "can't release 3: 1 of 3 permits are free already",
        ),
        ("rw-lock", None, [], "free", call(1, "release"), "1 can't release: free"),
        (
            "lease-mutex",
            7,
            [],
            "free, last token 7",
            call(1, "release", {"hold": "x"}),
            "1 (hold x) can't release: it is free",
        ),
        (
            "lease-mutex",
            None,
            [call(5, "acquire", {"ttl": 2_500_000_500_000_000}, {"hold": "y", "token": 8})],
            "held by 5 (hold y) until 2500000.500000 s or later, last token 8",
            call(1, "acquire", {"ttl": 1}),
            "1 can't acquire: 5 (hold y) holds it and can't expire before 2500000.500000 s",
        ),
        (
            "lease-mutex",
            None,
            [call(5, "acquire", {})],
            "held by 5",
            call(1, "extend", {"ttl": 5}),
            "1 can't extend: 5 holds it",
        ),
        (
            "fenced-mutex",
            None,
            [call(5, "acquire")],
            "held by 5",
            call(1, "release"),
            "1 can't release: 5 holds it",
        ),
        (
            "rw-lock",
            None,
            [call(7, "acquire")],
            "held exclusive by 7",
            call(1, "release"),
            "1 can't release: held exclusive by 7",
        ),
        (
            "rw-lock",
            None,
            [call(7, "acquire")],
            "held exclusive by 7",
            call(1, "acquire", "shared"),
            "1 can't acquire shared: held exclusive by 7",
        ),
        (
            "rw-lock",
            None,
            [call(7, "acquire", "read"), call(12, "acquire", "shared")],
            "held shared by 12, 7",
            call(1, "acquire", "write"),
            "1 can't acquire exclusive: held shared by 12, 7",
        ),
    ],
)
def test_states_and_impossible_steps_are_described_in_words(name, init, ops, shown, last, why):
    model = named(name, init)
    state = model.initial
    for op in ops:
        state = model.step(state, model.action(op))
    assert model.show(state) == shown
    assert model.step(state, model.action(last)) == Inconsistent(why)
