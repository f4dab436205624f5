"""Stories for tests of fairness: clients that queue for a lock. Times are in ms."""

from __future__ import annotations

from fencepost.checker.liveness import liveness
from tests.histories import MS

QUEUE = {"promises": {"fifo": True}}
ONE = {"promises": {"one_wakeup": True}}


def turn(story, process, hold, asked, granted, wakeups=None):
    value = {"lock": "orders", "ttl": 10**9}
    got = {"hold": hold, "token": None, "deadline": None}
    if wakeups is not None:
        got["wakeups"] = wakeups
    story.call(process, "acquire", asked, granted, value, got)
    story.release(process, hold, granted + 1)


def waits(
    story, process, asked, done, lock="orders", type="fail", error=("timeout", "gave up"), **more
):
    """Add an acquire that is never granted. With `done` None it never returns."""
    value = {"lock": lock, "ttl": 10**9, **more}
    story.call(process, "acquire", asked, done, value, type=type, error=list(error))


def served(story, start, end, step=1000):
    """Add a client that sends a request each second and is granted the lock at once."""
    for number, at in enumerate(range(start, end, step)):
        turn(story, 1, f"s{number}", at, at + 1)


def busy(story, until):
    """Add a holder from the start, so that other clients have to wait."""
    held(story, 7, "busy", 0, 0, until)


def held(
    story, process, hold, asked, granted, released, *, shared=False, token=None, deadline=None
):
    value = {"lock": "orders", "ttl": 10**9} | ({"mode": "shared"} if shared else {})
    got = {"hold": hold, "token": token, "deadline": deadline and deadline * MS}
    story.call(process, "acquire", asked, granted, value, got)
    story.release(process, hold, released)


def known(story):
    """Add an early grant to each process, which proves that its client runs and is connected."""
    processes = {op.process for op in story.history().clients()}
    for at, process in enumerate(sorted(processes), -60_000):
        story.grant(process, f"known-{process}", at, at + 1000)
        story.release(process, f"known-{process}", at)


def queue(story, **test):
    known(story)
    return liveness(story.history(), QUEUE | test)
