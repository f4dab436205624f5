"""The generator of the standard workload: take the lock, read, change, write, release.

`CriticalSection` decides what one process does next from what it was last answered, from the time,
and from its seed, and from nothing else: it touches no clock and no server. A worker runs it beside
the client, so that an op costs no trip to the harness.

Defects of locks show at different lengths of a hold: a release that asks for no owner when it comes
after the lease, a watchdog when it has to extend, a double grant when holds follow one another
closely. So the lengths are a mix, and the number of clients that ask at a time changes.

A holder that goes on past its lease would break exclusion by itself. So it plans: it reads and
writes while the lease has some time left, says shortly before the end that it has lost the lock
(`give-up`, an op for the client, which writes the event `lost` unless the lease was renewed), does
nothing more, and releases late. It plans by the length of the lease, and does not look at the clock
again: a client that was paused goes on as if nothing had happened.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any, NamedTuple

# Kinds of length in leases, from and up to, and how often each is drawn. The last has no end.
_HOLDS = ((0, 0.01, 4), (0.01, 0.7, 2), (0.7, 1.1, 2), (1.1, 1e9, 4))
_RESTS = ((0, 0.01, 2), (0.01, 1e9, 1))
# How often a holder extends its lease, by the kind of its hold.
_EXTENDS = (0.2, 0.3, 0.5, 0.1)

SPARE = 0.15
"""Which part of its lease a holder leaves over: so late a release still counts as one in time on a
machine that is busy."""
_RENEWED = 2 * SPARE
"""A lease of which more is left than that, when it should be nearly over, was renewed."""
PHASE = 2
"""For how many leases the same clients ask."""
_AGAIN_MS = 20
"""The longest time before a client that was not granted the lock asks again."""
_CALM_NS = 5_000_000
"""The longest time that anything waits for once the run is to come to its end."""


@dataclass(frozen=True)
class Settings:
    """`hold_ms`: the shortest and the longest hold. `think_ms`: of the rest between two holds.

    `contention`: the least and the greatest number of clients that begin sections at a time, of
    `clients`; None: all. `client` is the number of this one, from 0; from `shared_seed` all of
    them draw who is to ask. `calm_ns`: from then on (since the test's start) holds and rests are
    short, and all ask. `extend`: how likely a holder is to extend its lease before it writes; None:
    by the length of the hold. `shared`: how likely it asks for a shared hold, under which it reads
    and does not write. `write`: whether there is a resource to write to. `locks`: of how many locks
    each section takes one, drawn at random; each protects a resource of its own.
    """

    lock: str = "orders"
    resource: str = "account"
    locks: int = 1
    ttl_ns: int = 2_000_000_000
    hold_ms: tuple[float, float] = (0, 20)
    think_ms: tuple[float, float] = (0, 20)
    contention: tuple[int, int] | None = None
    clients: int = 1
    client: int = 0
    shared_seed: str = ""
    calm_ns: int | None = None
    extend: float | None = 0.2
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
    """Wait `after_s` seconds, then invoke `f` with `value`. `give-up` is no op (see above)."""

    f: str
    value: dict[str, Any]
    after_s: float = 0.0


GIVE_UP = "give-up"


@dataclass
class _Plan:
    """What is left to do in a hold, and when (ns since the test's start).

    `give_up`: when the holder has to say that it has lost the lock, unless it is over by then;
    None where it has said so, or need not.
    """

    hold: str
    release: int
    extend: int | None
    read: int | None
    write: int | None
    give_up: int | None


class _Lengths:
    """What a length is drawn from: (from, up to, kind) in ms, and how often each.

    `span` is the shortest and the longest in ms, `kinds` as above, in leases of `ttl_ms`.
    """

    def __init__(
        self, span: tuple[float, float], kinds: tuple[tuple[float, float, int], ...], ttl_ms: float
    ) -> None:
        low, high = span
        rows = [
            (max(low, begin * ttl_ms), min(high, end * ttl_ms), kind)
            for kind, (begin, end, _) in enumerate(kinds)
        ]
        # A single length that is where two kinds meet is of the first one.
        self.rows = [r for r in rows if r[0] < r[1]] or [r for r in rows if r[0] == r[1]][:1]
        self.weights = [kinds[kind][2] for _, _, kind in self.rows]


class CriticalSection:
    """One process' ops, one after the other."""

    def __init__(self, settings: Settings, seed: str) -> None:
        self._settings = settings
        self._random = Random(seed)
        ttl_ms = settings.ttl_ns / 1e6
        self._holds = _Lengths(settings.hold_ms, _HOLDS, ttl_ms)
        self._rests = _Lengths(settings.think_ms, _RESTS, ttl_ms)
        self._pairs = settings.pairs()
        # Those of this section.
        self._lock, self._resource = self._pairs[0]
        self._reads = False
        self._plan = _Plan("", 0, None, None, None, None)
        self._version: Any = None  # that was read

    def first(self, now: int) -> Next:
        return self._begin(now)

    def next(self, f: str, type: str, value: dict[str, Any], now: int) -> Next:
        """What to do after op `f` completed with `type` (ok, fail, info) and `value`, at `now`."""
        if type == "info":
            return self._begin(now)  # by a successor: this process is gone, its hold with it
        if f == "acquire":
            return self._granted(value, now) if type == "ok" else self._again()
        if f == "release":
            return self._begin(now)
        if type != "ok":
            return Next("release", {"lock": self._lock, "hold": value["hold"]})
        return self._go_on(f, value, now)

    # Between two holds.

    def _begin(self, now: int) -> Next:
        """Rest, and then take one of the locks, when it is this client's turn."""
        rest_ns = int(self._drawn_ms(self._rests)[0] * 1e6)
        # With one lock nothing is drawn.
        if len(self._pairs) > 1:
            self._lock, self._resource = self._random.choice(self._pairs)
        shared = self._settings.shared
        self._reads = bool(shared) and self._random.random() < shared
        return self._acquire(self._wait_s(self._turn(now + rest_ns), now))

    def _again(self) -> Next:
        """Ask once more for what was not granted, in turn or not: who waits for a lock goes on."""
        return self._acquire(self._random.uniform(0, _AGAIN_MS) / 1000)

    def _acquire(self, after_s: float) -> Next:
        value: dict[str, Any] = {"lock": self._lock, "ttl": self._settings.ttl_ns}
        if self._reads:
            value["mode"] = "shared"
        return Next("acquire", value, after_s)

    def _turn(self, at: int) -> int:
        """The first time from `at` on when this client is one of those that ask."""
        chosen = self._settings
        if chosen.contention is None:
            return at
        phase = PHASE * chosen.ttl_ns
        while chosen.calm_ns is None or at < chosen.calm_ns:
            random = Random(f"{chosen.shared_seed}/contention/{at // phase}")
            many = random.randint(*chosen.contention)
            if chosen.client in random.sample(range(chosen.clients), many):
                break
            at = (at // phase + 1) * phase
        return at

    # A hold.

    def _granted(self, value: dict[str, Any], now: int) -> Next:
        hold_ms, kind = self._drawn_ms(self._holds)
        length, leased = int(hold_ms * 1e6), int((1 - SPARE) * self._settings.ttl_ns)
        give_up = now + leased if length > leased else None
        self._plan = _Plan(value["hold"], now + length, None, None, None, give_up)
        if self._settings.write:
            self._plan_work(now, length, leased, kind)
        return self._step(now)

    def _plan_work(self, now: int, length: int, leased: int, kind: int) -> None:
        """When to extend, read and write, in a hold of `length` ns, of one of the kinds."""
        plan, likely = self._plan, self._settings.extend
        extend = int(self._random.uniform(0.1, 0.8) * min(length, leased))
        if self._random.random() < (_EXTENDS[kind] if likely is None else likely):
            plan.extend = now + extend
            leased += extend
        # The last moment for a write, and when work is done: early, late, or all the while.
        last = min(length, leased)
        read, write = self._random.choice(((0.0, 0.1), (0.8, 1.0), (0.0, 1.0)))
        share = self._random.uniform(0.5, 1)
        plan.read = now + int(read * share * last)
        if not self._reads:
            plan.write = now + int(write * share * last)

    def _go_on(self, f: str, value: dict[str, Any], now: int) -> Next:
        plan, ttl = self._plan, self._settings.ttl_ns
        if f == "extend":
            plan.extend = None
            if plan.give_up is not None:
                plan.give_up = now + int((1 - SPARE) * ttl)
        elif f == "read":
            plan.read, self._version = None, value["version"]
        elif f == "write":
            plan.write = None
        elif value["lost"]:
            plan.extend = plan.read = plan.write = plan.give_up = None
        else:
            deadline = value["deadline"]
            plan.give_up = None if deadline is None else deadline - int(SPARE * ttl)
        return self._step(now)

    def _step(self, now: int) -> Next:
        """What is next in this hold: work in its order, the end of the lease between."""
        plan = self._plan
        about = {"lock": self._lock, "hold": plan.hold}
        work = plan.write if plan.read is None else plan.read
        if plan.extend is not None and (work is None or plan.extend <= work):
            at, f = plan.extend, "extend"
            value: dict[str, Any] = {**about, "ttl": self._settings.ttl_ns}
        elif plan.read is not None:
            at, f = plan.read, "read"
            value = {"resource": self._resource, "hold": plan.hold}
        elif plan.write is not None:
            at, f = plan.write, "write"
            value = {"resource": self._resource, "version": self._version, "hold": plan.hold}
        else:
            at, f, value = plan.release, "release", about
        if plan.give_up is not None and plan.give_up < min(at, self._settings.calm_ns or at):
            left = int(_RENEWED * self._settings.ttl_ns)
            at, f, value = plan.give_up, GIVE_UP, {**about, "left": left}
        return Next(f, value, self._wait_s(at, now))

    def _wait_s(self, at: int, now: int) -> float:
        """How long to wait until then; in calm for hardly anything."""
        if self._settings.calm_ns is not None:
            at = min(at, max(now, self._settings.calm_ns) + _CALM_NS)
        return max(0, at - now) / 1e9

    def _drawn_ms(self, lengths: _Lengths) -> tuple[float, int]:
        """A length between two, of one of the kinds that lie between them; and which kind."""
        begin, end, kind = lengths.rows[0]
        if len(lengths.rows) > 1:
            ((begin, end, kind),) = self._random.choices(lengths.rows, lengths.weights)
        return self._random.uniform(begin, end), kind
