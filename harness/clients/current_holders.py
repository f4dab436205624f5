"""Current holders and the latest ended holds, by the client events so far: for the progress display
and for triggers. No verdict depends on them, because events of several clients come a little out of
order, and some ms late."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

from fencepost.checker.history.history import SPONTANEOUS
from fencepost.harness.clients.event import Event

_LAST = 5


class Held(NamedTuple):
    """A hold by its lock and client, from `start_ns` on (since the test's start).

    `end_ns` None: it is on. `deadline_ns` None: its client sees no lease. `lost`: its client has
    reported the loss of the lock, and has not released it.
    """

    lock: str
    client: str
    start_ns: int
    end_ns: int | None = None
    deadline_ns: int | None = None
    lost: bool = False

    def leased(self, now_ns: int) -> bool:
        """Return whether its lease is running. A client gives a lock up before the end of its
        lease, which excludes others until then."""
        return not self.lost if self.deadline_ns is None else now_ns <= self.deadline_ns

    def describe(self, now_ns: int) -> str:
        """client-2 orders 0.120 s"""
        length = ((self.end_ns or now_ns) - self.start_ns) / 1e9
        return f"{self.client} {self.lock} {max(length, 0.0):.3f} s"


class CurrentHolders:
    """`client` names the client of a process. A client has one hold of a lock at a time, so nothing
    here grows with the run."""

    def __init__(self, client: Callable[[int], str]) -> None:
        self._client = client
        self._granted: dict[tuple[str, str], Held] = {}
        self._late: dict[str, bool] = {}
        # Each with the time of its end.
        self._last: deque[tuple[Held, int]] = deque(maxlen=_LAST)

    def heard(self, event: Event) -> None:
        """Process a client's next event. Thousands come a second, and most change nothing."""
        f, type = event.f, event.type
        if f == "close" or (type == "info" and f not in SPONTANEOUS):
            self._gone(self._client(event.process), event.time)
        elif type == "invoke":
            if f == "release":
                self._released(self._key(event), event.time)
        elif f == "acquire":
            if type == "ok":
                key = self._key(event)
                self._granted[key] = Held(*key, event.time, None, _deadline(event))
        elif f == "lost":
            self._lost(self._key(event), event.time)
        elif f == "renewed" or (f == "extend" and type == "ok"):
            self._extended(self._key(event), _deadline(event))

    def _key(self, event: Event) -> tuple[str, str]:
        return (event.value and event.value.lock) or "", self._client(event.process)

    def _gone(self, client: str, time_ns: int) -> None:
        """Drop the holds of a process that has ended or is about to."""
        for key in [key for key in self._granted if key[1] == client]:
            self._released(key, time_ns)

    def _released(self, key: tuple[str, str], time_ns: int) -> None:
        held = self._granted.pop(key, None)
        if held is None:
            return
        over = held.deadline_ns is not None and held.deadline_ns < time_ns
        self._late[held.client] = held.lost or over
        if not held.lost:
            self._last.append((held, time_ns))

    def _lost(self, key: tuple[str, str], time_ns: int) -> None:
        held = self._granted.get(key)
        if held is not None and not held.lost:
            self._granted[key] = held._replace(lost=True)
            self._last.append((held, time_ns))

    def _extended(self, key: tuple[str, str], deadline_ns: int | None) -> None:
        if (held := self._granted.get(key)) is not None:
            self._granted[key] = held._replace(deadline_ns=deadline_ns)

    def leased(self, now_ns: int) -> list[str]:
        """Return the clients whose lease is running, also if they have given the lock up."""
        return [held.client for held in self.unreleased if held.leased(now_ns)]

    def released_late(self, client: str) -> bool:
        """Return whether the last hold that a client released had no lease any more, as far as the
        client knew."""
        return self._late.get(client, False)

    @property
    def unreleased(self) -> list[Held]:
        """Return the grants without a release, oldest first."""
        return sorted(self._granted.copy().values(), key=lambda held: held.start_ns)

    @property
    def on(self) -> list[Held]:
        """Return the holds that are on, longest first."""
        return [held for held in self.unreleased if not held.lost]

    @property
    def last(self) -> list[Held]:
        """Return the latest ended holds, latest first."""
        ended = list(self._last)[::-1]
        return [held._replace(end_ns=time_ns) for held, time_ns in ended]


def _deadline(event: Event) -> int | None:
    return event.value.deadline if event.value else None


def long_held(on: Sequence[Held], now_ns: int, for_s: float) -> str | None:
    """Return the client with the latest grant, of those that have held a lock for at least this
    long and rely on it for as long to come: no other client has been granted it since. A client
    whose lease is nearly at its end is about to release it."""
    long_ns = for_s * 1e9
    for held in sorted(on, key=lambda one: one.start_ns, reverse=True):
        counts_on_it = held.deadline_ns is None or held.deadline_ns - now_ns >= long_ns
        if now_ns - held.start_ns >= long_ns and counts_on_it:
            return held.client
    return None
