"""The generator of the standard workload: take the lock, read, change, write, release.

`CriticalSection` decides the next op of one process from the last answer, the time and its seed,
and nothing else: it touches no clock and no server. A worker runs it next to the client, so that an
op needs no round trip to the harness.

Defects of locks show at different lengths of a hold: a release without an owner check when it comes
after the lease, a watchdog when it has to extend, a double grant when holds follow one another
closely. So the lengths are a mix, and the number of contending clients changes.

A holder that continues past its lease would break exclusion by itself. So it plans: it reads and
writes while the lease has some time left, reports shortly before the end that it has lost the lock
(`give-up`, an op for the client, which writes the event `lost` unless the lease was renewed), does
nothing more, and releases late. It plans by the length of the lease, and does not read the clock
again: a paused client continues as if nothing had happened.

A trusting holder does not plan: it reads, waits for its whole hold, writes and releases, even if
its lease has expired meanwhile. Most programs that use a lock work like this, and so do the clients
of published tests.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any, NamedTuple

# Kinds of length in leases, from and up to, and the weight of each. The last has no end.
_HOLDS = ((0, 0.01, 6), (0.01, 0.7, 2), (0.7, 1.1, 2), (1.1, 1e9, 2))
_RESTS = ((0, 0.01, 2), (0.01, 1e9, 1))
# Probability that a holder extends its lease, by the kind of its hold. Most defects of an extension
# show in a hold that outlasts the lease it extended.
_EXTENDS = (0.05, 0.1, 0.5, 0.6)

SPARE = 0.15
"""The part of its lease that a holder leaves unused, so that even a late release counts as in time
on a busy machine."""
_RENEWED = 2 * SPARE
"""If more than this part of a lease is left when it should be about to expire, it was renewed."""
PHASE = 2
"""The number of leases during which the same clients contend."""
_AGAIN_MS = 20
"""The longest time before a client that was refused the lock retries."""
_CALM_NS = 5_000_000
"""The longest wait once the run is about to end."""


@dataclass(frozen=True)
class Settings:
    """The parameters of a generator. `hold_ms`: the shortest and the longest hold; `think_ms`:
    likewise for the rest between two holds.

    `contention`: the least and the greatest number of clients that begin sections at a time, of
    `clients`; None: all. `client` is the number of this one, from 0; all draw the contending
    clients from `shared_seed`. `calm_ns`: from then on (since the test's start) holds and rests are
    short, and all contend. `extend`: probability that a holder extends its lease before it writes;
    None: by the length of the hold. `shared`: probability of a shared hold, under which the client
    reads and does not write. `again`: probability that a holder acquires the lock a second time
    and then releases that hold alone, for a reentrant lock. `trusting`: probability that a holder
    is a trusting one. `write`: whether there is a resource to write to. `locks`: the number of
    locks, of which each section draws one; each protects its own resource.
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
    again: float = 0.0
    trusting: float = 0.0
    write: bool = True

    def pairs(self) -> list[tuple[str, str]]:
        """Return every lock with its resource: `orders` and `account`, or `orders-1` and
        `account-1` and so on if there are several."""
        if self.locks == 1:
            return [(self.lock, self.resource)]
        numbers = range(1, self.locks + 1)
        return [(f"{self.lock}-{number}", f"{self.resource}-{number}") for number in numbers]


def work_seed(seed: str, process: int) -> str:
    """Derive the seed of one process' ops from the run's, wherever its generator runs."""
    return f"{seed}/{process}/work"


class Next(NamedTuple):
    """Wait `after_s` seconds, then invoke `f` with `value`. `give-up` is not an op (see above)."""

    f: str
    value: dict[str, Any]
    after_s: float = 0.0


GIVE_UP = "give-up"


@dataclass
class _Plan:
    """The remaining steps of a hold, and their times (ns since the test's start).

    `give_up`: when the holder has to report the lock as lost, unless it has released it by then;
    None if it has, or does not have to.
    """

    hold: str
    release: int
    extend: int | None
    read: int | None
    write: int | None
    give_up: int | None
    again: int | None = None


class _Lengths:
    """The distribution of a length: (from, up to, kind) in ms, and their weights.

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
        # A single length on the border of two kinds belongs to the first one.
        self.rows = [r for r in rows if r[0] < r[1]] or [r for r in rows if r[0] == r[1]][:1]
        self.weights = [kinds[kind][2] for _, _, kind in self.rows]


class CriticalSection:
    """Generates one process' ops, one after the other."""

    def __init__(self, settings: Settings, seed: str) -> None:
        self._settings = settings
        self._random = Random(seed)
        ttl_ms = settings.ttl_ns / 1e6
        self._holds = _Lengths(settings.hold_ms, _HOLDS, ttl_ms)
        self._rests = _Lengths(settings.think_ms, _RESTS, ttl_ms)
        self._pairs = settings.pairs()
        # The lock and the resource of this section.
        self._lock, self._resource = self._pairs[0]
        self._reads = False
        self._plan = _Plan("", 0, None, None, None, None)
        self._version: Any = None  # the value read
        self._nested = False  # it acquires the lock that it holds, or releases that second hold

    def first(self, now: int) -> Next:
        return self._begin(now)

    def next(self, f: str, type: str, value: dict[str, Any], now: int) -> Next:
        """Return the next op after op `f` completed with `type` (ok, fail, info) and `value`, at
        `now`."""
        if type == "info":
            self._nested = False
            return self._begin(now)  # for a successor: this process is gone, and its hold with it
        if self._nested:
            if f == "acquire" and type == "ok":
                return Next("release", {"lock": self._lock, "hold": value["hold"]})
            self._nested = False
            return self._step(now)
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
        # A single lock needs no draw.
        if len(self._pairs) > 1:
            self._lock, self._resource = self._random.choice(self._pairs)
        shared = self._settings.shared
        self._reads = bool(shared) and self._random.random() < shared
        return self._acquire(self._wait_s(self._turn(now + rest_ns), now))

    def _again(self) -> Next:
        """Retry a refused request, in turn or not: a waiting client keeps asking."""
        return self._acquire(self._random.uniform(0, _AGAIN_MS) / 1000)

    def _acquire(self, after_s: float) -> Next:
        value: dict[str, Any] = {"lock": self._lock, "ttl": self._settings.ttl_ns}
        if self._reads:
            value["mode"] = "shared"
        return Next("acquire", value, after_s)

    def _turn(self, at: int) -> int:
        """Return the first time from `at` on when this client contends."""
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
        trusting = self._settings.trusting
        if trusting and self._random.random() < trusting:
            end = now + int(self._random.uniform(*self._settings.hold_ms) * 1e6)
            write = end if self._settings.write and not self._reads else None
            read = now if self._settings.write else None
            self._plan = _Plan(value["hold"], end, None, read, write, None)
            return self._step(now)
        hold_ms, kind = self._drawn_ms(self._holds)
        length, leased = int(hold_ms * 1e6), int((1 - SPARE) * self._settings.ttl_ns)
        give_up = now + leased if length > leased else None
        self._plan = _Plan(value["hold"], now + length, None, None, None, give_up)
        if self._settings.write:
            self._plan_work(now, length, leased, kind)
        if self._settings.again and self._random.random() < self._settings.again:
            self._plan.again = now + int(self._random.uniform(0, 0.5) * min(length, leased))
        return self._step(now)

    def _plan_work(self, now: int, length: int, leased: int, kind: int) -> None:
        """Plan when to extend, read and write, in a hold of `length` ns, of one of the kinds."""
        plan, likely = self._plan, self._settings.extend
        extend = int(self._random.uniform(0.1, 0.8) * min(length, leased))
        if self._random.random() < (_EXTENDS[kind] if likely is None else likely):
            plan.extend = now + extend
            leased += extend
        # The last moment for a write, and when the work ends: early, late, or at the end.
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
        """Return the next step of this hold: its work in order, interrupted by the end of the
        lease."""
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
        if plan.again is not None and plan.again <= at:
            again, plan.again, self._nested = plan.again, None, True
            return self._acquire(self._wait_s(again, now))
        if plan.give_up is not None and plan.give_up < min(at, self._settings.calm_ns or at):
            left = int(_RENEWED * self._settings.ttl_ns)
            at, f, value = plan.give_up, GIVE_UP, {**about, "left": left}
        return Next(f, value, self._wait_s(at, now))

    def _wait_s(self, at: int, now: int) -> float:
        """Return how long to wait until then; in the calm phase hardly at all."""
        if self._settings.calm_ns is not None:
            at = min(at, max(now, self._settings.calm_ns) + _CALM_NS)
        return max(0, at - now) / 1e9

    def _drawn_ms(self, lengths: _Lengths) -> tuple[float, int]:
        """Draw a length between two, of one of the kinds that lie between them; return its kind
        too."""
        begin, end, kind = lengths.rows[0]
        if len(lengths.rows) > 1:
            ((begin, end, kind),) = self._random.choices(lengths.rows, lengths.weights)
        return self._random.uniform(begin, end), kind
