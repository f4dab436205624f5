"""Input from the harness: ops, work, and orders that a client carries out at any time.

{"f": "acquire", "value": {...}}    one op {"control": "work", ...}            run the generator
here until `until_ns`; answered `idle` {"control": "rest"}                 end that early
{"control": "arm", "point": P}      stop this process (SIGSTOP) when it next reaches P; with
"then": Q, also when it reaches Q after that {"control": "disarm", "point": P}   cancel that
{"control": "clock"}                report the wall clock; answered `clock`
"""

from __future__ import annotations

import time
from typing import Any

from fencepost.workloads.client.failpoints import Failpoints
from fencepost.workloads.client.wire import Inbox, Outbox


class Orders:
    def __init__(self, inbox: Inbox, out: Outbox, failpoints: Failpoints) -> None:
        self._inbox = inbox
        self._out = out
        self._failpoints = failpoints
        failpoints.hear = self.hear

    def take(self, timeout_s: float | None) -> dict[str, Any] | None:
        """Return the next op, `work` or `rest`, and carry out the orders before it.

        None if none comes in time. Raises NoMoreOrders at the end of standard input.
        """
        end = None if timeout_s is None else time.monotonic() + timeout_s
        while True:
            left_s = None if end is None else max(0.0, end - time.monotonic())
            order = self._inbox.take(left_s)
            if order is None or not self._carried_out(order):
                return order

    def hear(self) -> None:
        """Carry out orders that have arrived and can be carried out during an op."""
        self._inbox.sift(self._carried_out)

    def _carried_out(self, order: dict[str, Any]) -> bool:
        match order.get("control"):
            case "arm":
                self._failpoints.arm(order["point"], order.get("then", ""))
            case "disarm":
                self._failpoints.disarm(order["point"])
            case "clock":
                self._out.answer("clock", **wall_clock())
            case _:
                return False
        return True


def wall_clock() -> dict[str, int]:
    """Return how far the wall clock is ahead of the monotonic one: bounds, in ns."""
    before = time.monotonic_ns()
    wall = time.time_ns()
    after = time.monotonic_ns()
    return {"low_ns": wall - after, "high_ns": wall - before}
