"""The generator of the standard workload: take the lock, read, change, write, release.

`CriticalSection` decides what one process does next from what it was last answered and from
its seed, and from nothing else: it touches no clock and no server. A worker runs it beside the
client, so that an op costs no trip to the harness.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any, NamedTuple


@dataclass(frozen=True)
class Settings:
    """`think_ms`: the longest time the work under the lock takes, the shortest being 0.

    `pause_ms`: the longest time between two sections. `extend`: how likely a holder is to
    extend its lease before it writes. `shared`: how likely it asks for a shared hold, under
    which it reads and does not write. `write`: whether there is a resource to write to.
    `locks`: of how many locks each section takes one, drawn at random; each protects a resource
    of its own.
    """

    lock: str = "orders"
    resource: str = "account"
    locks: int = 1
    ttl_ns: int = 2_000_000_000
    think_ms: float = 20
    pause_ms: float = 20
    extend: float = 0.2
    shared: float = 0.0
    write: bool = True

    def pairs(self) -> list[tuple[str, str]]:
        """Every lock with its resource: `orders` and `account`, or `orders-1` and `account-1`
        and so on where there are several."""
        if self.locks == 1:
            return [(self.lock, self.resource)]
        numbers = range(1, self.locks + 1)
        return [(f"{self.lock}-{number}", f"{self.resource}-{number}") for number in numbers]


def work_seed(seed: str, process: int) -> str:
    """The seed of one process' ops, of the run's, wherever its generator runs."""
    return f"{seed}/{process}/work"


class Next(NamedTuple):
    """Wait `after_s` seconds, then invoke `f` with `value`."""

    f: str
    value: dict[str, Any]
    after_s: float = 0.0


class CriticalSection:
    """One process' ops, one after the other."""

    def __init__(self, settings: Settings, seed: str) -> None:
        self._settings = settings
        self._random = Random(seed)
        self._pairs = settings.pairs()
        # Those of this section.
        self._lock, self._resource = self._pairs[0]
        self._reads = False

    def first(self) -> Next:
        return self._acquire()

    def next(self, f: str, type: str, value: dict[str, Any]) -> Next:
        """What to do after op `f` completed with `type` (ok, fail, info) and `value`."""
        if type == "info":
            return self._acquire()  # by a successor: this process is gone, its hold with it
        if f == "acquire":
            return self._work(value) if type == "ok" else self._acquire()
        if f == "extend" and type == "ok":
            return self._read(value)
        if f == "read" and type == "ok" and not self._reads:
            return self._change(value)
        if f in ("extend", "read", "write"):
            return Next("release", {"lock": self._lock, "hold": value["hold"]})
        return self._acquire()

    def _acquire(self) -> Next:
        pause = self._up_to(self._settings.pause_ms)
        # With one lock nothing is drawn: a seed gives the ops that it always gave.
        if len(self._pairs) > 1:
            self._lock, self._resource = self._random.choice(self._pairs)
        value: dict[str, Any] = {"lock": self._lock, "ttl": self._settings.ttl_ns}
        self._reads = bool(self._settings.shared) and self._random.random() < self._settings.shared
        if self._reads:
            value["mode"] = "shared"
        return Next("acquire", value, pause)

    def _work(self, value: dict[str, Any]) -> Next:
        if not self._settings.write:
            return Next("release", {"lock": self._lock, "hold": value["hold"]})
        if self._random.random() < self._settings.extend:
            lock = {"lock": self._lock, "hold": value["hold"]}
            return Next("extend", {**lock, "ttl": self._settings.ttl_ns}, self._think() / 2)
        return self._read(value)

    def _read(self, value: dict[str, Any]) -> Next:
        return Next("read", {"resource": self._resource, "hold": value["hold"]})

    def _change(self, value: dict[str, Any]) -> Next:
        written = {
            "resource": self._resource,
            "version": value["version"],
            "hold": value["hold"],
        }
        return Next("write", written, self._think())

    def _think(self) -> float:
        return self._up_to(self._settings.think_ms)

    def _up_to(self, most_ms: float) -> float:
        return self._random.uniform(0, most_ms) / 1000 if most_ms else 0.0
