"""Stories for tests of the lease-mutex model: renewals, ends of sessions, and the verdict."""

from __future__ import annotations

from fencepost.checker.linearizable import linearizable
from tests.histories import MS

CLOCKS = {f"client-{n}": {"offset_ns": 0, "bound_ns": 4 * MS} for n in (0, 1)}


def verdict(story, **test):
    return linearizable(story.history(), test)


def renewed(story, process, hold, at, until):
    value = {"lock": "orders", "hold": hold, "deadline": until * MS}
    story.op(at, process, "info", "renewed", value)


def expired(story, process, at):
    story.op(at, process, "info", "lost", {"lock": "orders", "hold": None}, ["expired", "gone"])
