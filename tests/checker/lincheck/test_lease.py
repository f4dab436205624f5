"""What lease-mutex forgets: a grant that was given back, whether or not it had expired before."""

from __future__ import annotations

from typing import Any

from checker.lincheck import named
from checker.lincheck.budget import Budget
from checker.lincheck.verdict import check_numbered


def queue(grants: int, ttl: int) -> list[dict[str, Any]]:
    """One client that takes the lock and gives it back, over and over."""
    ops = []
    for n in range(grants):
        lock = {"lock": "orders"}
        granted = lock | {"ttl": ttl, "hold": n, "token": n}
        ops += [
            ("invoke", "acquire", lock | {"ttl": ttl}),
            ("ok", "acquire", granted),
            ("invoke", "release", lock | {"hold": n}),
            ("ok", "release", lock | {"hold": n}),
        ]
    return [
        {"process": 0, "type": type, "f": f, "value": value, "time": time}
        for time, (type, f, value) in enumerate(ops)
    ]


def test_grants_that_may_expire_at_once_cost_no_more_the_more_there_are_of_them():
    model = named("lease-mutex", failed_release="ended")
    found = check_numbered(enumerate(queue(60, ttl=0)), model, Budget.starting_now(5.0, None))
    assert found.valid is True
