"""Stories for tests of liveness: a lock for which clients wait. Times are in ms."""

from __future__ import annotations

from fencepost.checker.liveness import liveness
from tests.histories import MS

TTL, BOUND = 1000, 2000
LIMIT = TTL + BOUND
SERVERS = [f"redis-{n}" for n in range(1, 6)]
STUCK = 40_000
LEASE = "the end of a lease"
"""The waits that a run did not test in which each hold was released."""
MINORITY = {"servers": SERVERS, "promises": {"minority": True}}


def verdict(story, **test):
    return liveness(story.history(), {"liveness_bound_s": BOUND / 1000, **test})


def cut(story, start, end, *servers):
    """Stop servers."""
    story.fault("pause", start, end, list(servers))


def healed_at_5000(story):
    """The lock is due at 6 s, and the limit is 8 s."""
    cut(story, 0, 5000, *SERVERS)
    # Its lease may begin when the servers answer again.
    unheard(story, 4000)


def unheard(story, at):
    """Add a request that gets no answer: it may have begun a lease."""
    asks(story, at, at + 10, process=6, type="info", error=("timeout", "-"))


def asks(
    story, at, done, process=7, lock="orders", type="fail", error=("not-granted", "no"), **more
):
    asked = {"lock": lock, "ttl": TTL * MS, **more}
    story.call(process, "acquire", at, done, asked, type=type, error=list(error))


def asks_in_vain(story, start, end):
    for at in range(start, end, 100):
        story.denied(7, at, at + 90)


def dies_with_the_lock(story):
    story.grant(1, "h1", at=0, until=TTL)
    story.call(1, "read", 100, None, {"resource": "account"})
    story.killed(1, 200, "read")


def limits(found):
    """Return the times by which the lock had to be available, in s."""
    return [
        e["what"].split(" granted by ")[1].split(" s,")[0]
        for e in found.evidence
        if " granted by " in e["what"]
    ]
