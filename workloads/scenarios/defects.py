"""The known defects of third-party software, and how each is reproduced.

`fencepost track-record` reproduces them one after the other (harness/campaigns/track_record.py),
and docs/track-record.md is the table of its results. A defect is one entry of DEFECTS: its
description, the software, its public issue, and the ways to reproduce it. A way is data, so that
its command line can be printed.

An issue is entered if it is about this defect, and "related" if it is about its cause.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from fencepost.checker.history.history import History
from fencepost.commandline import command, option

Shows = Callable[[History], str]
"""Returns the evidence of the defect in a history, in words; '' without any."""


@dataclass(frozen=True)
class InSuite:
    """A scenario of a suite, on real servers: its outcome must be as the suite expects. If the
    verdicts do not show the defect, `shows` must."""

    suite: str
    scenario: str
    shows: Shows | None = None

    @property
    def words(self) -> tuple[str, ...]:
        return ("suite", self.suite, "--only", self.scenario)

    @property
    def where(self) -> str:
        return "real servers"


@dataclass(frozen=True)
class ByHunt:
    """A hunt of the library's own code, unmodified, on simulated servers. The result of this seed
    is the same on any machine, with any number of processes."""

    lock: str
    faults: str
    goal: str
    seed: int

    @property
    def words(self) -> tuple[str, ...]:
        asked = ("--faults", self.faults, "--goal", self.goal, "--seed", str(self.seed))
        return ("hunt", self.lock, *asked)

    @property
    def where(self) -> str:
        return "simulated servers"


@dataclass(frozen=True)
class ByLeases:
    """A run without faults, on real servers, in which the leases in etcd are counted all the time:
    more than `most` at once show the defect. `settings` as for `fencepost test`."""

    lock: str
    most: int
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def where(self) -> str:
        return "real servers"


Way = InSuite | ByHunt | ByLeases


@dataclass(frozen=True)
class Defect:
    """A known defect. `lock` is the software's name in fencepost, `software` its usual name;
    `issue` is an address, or ''."""

    name: str
    lock: str
    software: str
    what: str
    ways: tuple[Way, ...]
    issue: str = ""
    related: bool = False

    @property
    def commands(self) -> tuple[str, ...]:
        """Return the command for each of the ways; for those without one, that of the track
        record."""
        alone = ("track-record", *option("only", self.name))
        return tuple(
            command(*(alone if isinstance(way, ByLeases) else way.words)) for way in self.ways
        )


def waits_longer(node: str, f: str, seconds: float) -> Shows:
    """Return a function that finds an op of this client that took longer than this, although its
    caller had set a timeout.

    The client measures the time itself, and a slow machine adds little to it.
    """

    def shows(history: History) -> str:
        took_s = [
            (call.end.time - call.begin.time) / 1e9
            for call in history.calls()
            if call.end is not None and (call.begin.node, call.begin.f) == (node, f)
        ]
        longest_s = max(took_s, default=0.0)
        return f"{f} of {node} took {longest_s:.1f} s" if longest_s > seconds else ""

    return shows


_LIBRARIES = "libraries"
# Two per client would be one for its hold and one for its next try. There are hundreds.
_MOST_LEASES = 50
_TRIES = {"time_s": 8.0, "hold": "0..20ms", "think": "0..20ms", "contention": "all"}

DEFECTS = (
    Defect(
        "etcd-expired-waiter", "etcd-lock-api", "etcd 3.4, lock API",
        "A waiter whose lease expired while it waited is granted the lock, and so is the next "
        "waiter: two clients hold it.",
        (InSuite("etcd", "expired-waiter-3.4"),),
        "https://github.com/etcd-io/etcd/issues/11456",
    ),
    Defect(
        "redlock-py-minority-down", "redlock-py", "redlock-py",
        "One dead server of five makes every acquire raise an error and leave four keys behind: "
        "no client is granted the lock.",
        (InSuite(_LIBRARIES, "redlock-py-minority-down"),),
        "https://github.com/SPSCommerce/redlock-py/pull/27", related=True,
    ),
    Defect(
        "node-redlock-extend-unlocks", "node-redlock", "redlock (npm)",
        "An extension that finds no quorum releases the lock on every server: another client is "
        "granted it within the lease.",
        (InSuite(_LIBRARIES, "node-redlock-extend-unlocks"),),
    ),
    Defect(
        "redis-py-reply-lost", "redis-py", "redis-py, Lock",
        "If the reply to SET is lost, the client sends it again, finds its own key, and acquire "
        "returns False: until the lease expires no client holds the lock or can acquire it.",
        (
            ByHunt("redis-py", "packet", "liveness", seed=1),
            InSuite(_LIBRARIES, "redis-py-reply-lost"),
        ),
    ),
    Defect(
        "kazoo-timeout", "kazoo", "kazoo, Lock",
        "acquire(timeout=1) waits without a limit while there is no connection.",
        # The limit was 1 s, and the servers are away for two TTLs of 2 s.
        (InSuite(_LIBRARIES, "kazoo-waits-past-its-timeout",
                 waits_longer("client-2", "acquire", 3)),),
    ),
    Defect(
        "kazoo-no-deadline", "kazoo", "kazoo, Lock",
        "The client reports no deadline to a holder: a holder paused past its session learns of "
        "the end only after it has written.",
        (InSuite(_LIBRARIES, "kazoo-paused"),),
    ),
    Defect(
        "curator-no-deadline", "curator", "Curator, InterProcessMutex",
        "The client reports no deadline to a holder: a holder paused past its session learns of "
        "the end only after it has written.",
        (InSuite(_LIBRARIES, "curator-paused"),),
    ),
    Defect(
        "python-redis-lock-silence", "python-redis-lock", "python-redis-lock",
        "With auto_renewal, the renewal thread finds the lock gone and ends without notifying the "
        "holder.",
        (InSuite(_LIBRARIES, "python-redis-lock-lost-in-silence"),),
    ),
    Defect(
        "aetcd-leases", "aetcd", "aetcd, Lock",
        "Every failed attempt leaves a lease in etcd until its TTL has passed.",
        (ByLeases("aetcd", _MOST_LEASES, _TRIES),),
    ),
    Defect(
        "etcd3gw-leases", "etcd3gw", "etcd3gw, Lock",
        "Every failed attempt leaves a lease in etcd until its TTL has passed.",
        (ByLeases("etcd3gw", _MOST_LEASES, _TRIES),),
    ),
)  # fmt: skip
"""In the order in which they are reproduced and shown."""
