"""When a step without an invocation may happen at the earliest."""

from __future__ import annotations

from fencepost.checker.lincheck import named
from fencepost.checker.lincheck.operation import objects
from fencepost.checker.lincheck.verifier import NEVER, Moments


def test_a_lease_may_expire_from_the_first_event_that_is_late_enough():
    lease = {"lock": "orders", "ttl": 10}
    told = [
        (0, "invoke", "acquire", 0),
        (0, "ok", "acquire", 1),
        (1, "invoke", "acquire", 5),
        (2, "invoke", "acquire", 10),
        (1, "ok", "acquire", 14),
        (2, "ok", "acquire", 15),
    ]
    events = [
        {"process": process, "type": type, "f": f, "value": lease, "time": time}
        for process, type, f, time in told
    ]
    model = named("lease-mutex")
    [operations] = objects(enumerate(events, 1), model).parts.values()
    moments = Moments(operations, model)
    assert [position for _, position in moments.timed] == [3, 5]
    third = model.spawns(operations[2].action)
    assert moments.of(third.action) == NEVER
