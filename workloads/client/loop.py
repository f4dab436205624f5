"""Runs the generator next to the client: ops one after the other."""

from __future__ import annotations

from typing import Any

import msgspec

from fencepost.workloads.client.client import Client
from fencepost.workloads.client.critical_section import GIVE_UP, CriticalSection, Settings
from fencepost.workloads.client.orders import Orders
from fencepost.workloads.client.wire import Outbox

# The longest time without a check for orders, if the client never waits.
LISTEN_NS = 5_000_000


def work(client: Client, orders: Orders, out: Outbox, order: dict[str, Any], seed: str) -> None:
    """Run the generator until `until_ns` or `rest`, then release the lock if it is held."""
    section = CriticalSection(msgspec.convert(order["settings"], Settings), seed)
    step, until = section.first(out.now()), order["until_ns"]
    listened = 0
    over = False
    while True:
        now = out.now()
        if step.after_s or now - listened > LISTEN_NS:
            out.flush()
            # Without a pause, and at the end, this checks for orders without waiting.
            after_s = 0.0 if over else step.after_s
            rest = orders.take(min(after_s, max(0.0, (until - now) / 1e9)))
            over = over or rest is not None
            listened = now
        over = over or now >= until
        if over and step.f == "acquire":
            break
        done = client.give_up(step.value) if step.f == GIVE_UP else client.apply(step.f, step.value)
        step = section.next(step.f, *done, out.now())
    out.answer("idle")
