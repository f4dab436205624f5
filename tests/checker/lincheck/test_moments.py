"""When a step that nobody invokes may first happen."""

from __future__ import annotations

from fencepost.checker.lincheck import named
from fencepost.checker.lincheck.operation import objects
from fencepost.checker.lincheck.verifier import NEVER, Moments


def test_a_lease_may_run_out_from_the_first_event_whose_time_is_late_enough_whatever_it_is():
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
