"""The debate about Redlock as schedules (claims C1 to C10), each against its author's prediction.

A to E of the articles are redis-1 to redis-5, clients 1 and 2 are client-1 and client-2. "The
lock service" is what `lease_exclusion` judges, "two clients" is `mutual_exclusion`, "the data"
is `resource`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from fencepost.workloads.scenarios.expectations import (
    DAMAGED,
    FENCED,
    KEPT,
    TWICE,
    TWO_BELIEVE,
    Expected,
)
from fencepost.workloads.scenarios.runs import controls, explore
from fencepost.workloads.scenarios.scenario import (
    Begin,
    Do,
    Finish,
    Heal,
    Inject,
    LeaseOver,
    Scenario,
    SecondBegins,
    Step,
)
from fencepost.workloads.scenarios.schedules import (
    ONE,
    STORE,
    THREE,
    TWO,
    crash,
    cut,
    pause_after_acquire,
    pause_at,
)
from fencepost.workloads.scenarios.sources import KLEPPMANN, SANFILIPPO
from fencepost.workloads.scenarios.suite import Suite

A, B, C, D, E = (f"redis-{n}" for n in range(1, 6))

# 1 reaches A, B, C only and 2 reaches C, D, E only: C alone decides between them.
_SPLIT = (cut("cut-1", ONE, [D, E]), cut("cut-2", TWO, [A, B]))
_JOIN = (Heal("cut-1"), Heal("cut-2"))

# Both have read the same version when 2 writes and then 1: the second write undoes the first.
_BOTH_READ = (Do(ONE, "read"), Do(TWO, "read"))

# 1's keys are gone from a majority: it has nothing left to release.
_BOTH_RELEASE = (Do(ONE, "release", expect="fail"), Do(TWO, "release"))


def _both_write(last: str) -> tuple[Step, ...]:
    return (*_BOTH_READ, Do(TWO, "write"), Do(ONE, "write", expect=last))


def _clock_jump(last: str) -> tuple[Step, ...]:
    jump = {"offset_s": 30.0, "words": f"the clock of {C} jumps 30 s ahead"}
    return (
        *_SPLIT,
        Do(ONE, "acquire"),
        Inject("jump", "clock", (C,), jump),
        Do(TWO, "acquire"),
        *_both_write(last),
        Heal("jump"),
        *_JOIN,
        *_BOTH_RELEASE,
    )


def _pause_during_acquire(granted: bool, last: str = "ok") -> tuple[Step, ...]:
    point, when = "replies-in-flight", "with the servers' replies in flight"
    one = (Do(ONE, "read"),) if granted else ()
    writes = (Do(TWO, "write"), Do(ONE, "write", expect=last)) if granted else (Do(TWO, "write"),)
    return (
        *pause_at("pause", ONE, "acquire", point, when),
        Do(TWO, "acquire", again=True),
        Do(TWO, "read"),
        Heal("pause"),
        Finish(ONE, expect="ok" if granted else "fail"),
        *one,
        *writes,
        *(_BOTH_RELEASE if granted else (Do(TWO, "release"),)),
    )


def _crash(restart: str, power: bool = False, last: str = "ok") -> tuple[Step, ...]:
    """`restart`: "empty" and "full" at once, or "delayed" until 1's lease is over.

    With `power` lost, C's key is not synced yet, if it is synced once a second: what is written
    first in a second is synced at once, and 1 is granted the lock after that.
    """
    fault = crash("crash", C)
    first: tuple[Step, ...] = (Do(ONE, "acquire"),)
    if power:
        fault = Inject("crash", "power", (C,), {"words": f"{C} loses power"})
        first = (Do(ONE, "acquire"), SecondBegins(), Do(ONE, "release"), Do(ONE, "acquire"))
    second: tuple[Step, ...]
    if restart == "empty":
        second = (
            Heal("crash"),
            Do(TWO, "acquire"),
            *_both_write(last),
            *_JOIN,
            Do(ONE, "release", expect="fail"),
        )
    else:
        back, late = ((Heal("crash"),), ()) if restart == "full" else ((), (Heal("crash"),))
        second = (
            *back,
            Do(TWO, "acquire", expect="fail"),
            Do(ONE, "read"),
            Do(ONE, "write"),
            LeaseOver(ONE),
            *late,
            Do(ONE, "release", expect="fail"),
            Do(TWO, "acquire", again=True),
            Do(TWO, "read"),
            Do(TWO, "write"),
            *_JOIN,
        )
    return (*_SPLIT, *first, fault, *second, Do(TWO, "release"))


def _counter_lost(last: str) -> tuple[Step, ...]:
    once = (Do(ONE, "acquire"), Do(ONE, "read"), Do(ONE, "write"), Do(ONE, "release"))
    return (
        *once,
        *once,
        crash("crash", A, f"{A}, which counts, crashes and loses its data"),
        Heal("crash"),
        Do(TWO, "acquire"),
        Do(TWO, "read"),
        Do(TWO, "write", expect=last),
        Do(TWO, "release"),
    )


def _counters_diverge(last: str) -> tuple[Step, ...]:
    """3 reaches A alone: its failed tries count there, and nowhere else."""
    tries = (Do(THREE, "acquire", expect="fail"),) * 3
    return (
        cut("cut-3", THREE, [B, C, D, E]),
        *tries,
        *_SPLIT,
        Do(ONE, "acquire"),
        Do(ONE, "read"),
        Do(ONE, "write"),
        Do(ONE, "release"),
        Do(TWO, "acquire"),
        Do(TWO, "read"),
        Do(TWO, "write", expect=last),
        *_JOIN,
        Heal("cut-3"),
        Do(TWO, "release"),
    )


def _values() -> tuple[Step, ...]:
    def turn(client: str) -> tuple[Step, ...]:
        write = Do(client, "write", expect="any")
        return (Do(client, "acquire"), Do(client, "read"), write, Do(client, "release"))

    return (turn(ONE) + turn(TWO)) * 4


def _delayed_write(last: str) -> tuple[Step, ...]:
    hold = {
        "source": ONE,
        "to": STORE,
        "words": f"the packets from {ONE} to the store are held back",
    }
    return (
        Do(ONE, "acquire"),
        Do(ONE, "read"),
        Inject("delay", "delay", (ONE, STORE), hold),
        Begin(ONE, "write"),
        Do(TWO, "acquire", again=True),
        Do(TWO, "read"),
        Do(TWO, "write"),
        Heal("delay"),
        Finish(ONE, expect=last),
        Do(ONE, "release", expect="fail"),
        Do(TWO, "release"),
    )


def _both_guards(
    name: str,
    claim: str,
    source: str,
    what: str,
    token: str,
    plain: tuple[Step, ...],
    plain_expected: Expected,
    fenced: tuple[Step, ...],
    fenced_expected: Expected,
    options: Mapping[str, Any] | None = None,
    **settings: Any,
) -> tuple[Scenario, Scenario]:
    """The schedule against an unguarded resource, and with tokens against a fenced one."""
    chosen = {"retries": 0, **(options or {})}
    return (
        Scenario(
            name, claim, source, what, "none", plain, plain_expected, chosen, **settings,
        ),
        Scenario(
            name, claim, source, what, "fenced", fenced, fenced_expected,
            {**chosen, "token": token}, **settings,
        ),
    )  # fmt: skip


def _token_source(
    name: str, what: str, token: str, steps: Callable[[str], tuple[Step, ...]], last: str
) -> tuple[Scenario, Scenario]:
    """A source of tokens that does not order the grants: the lock itself works."""
    # Neither is linearizable where tokens fall: a grant with a lower one comes too late.
    expected = KEPT | {"linearizable": False, "fencing": False}
    return _both_guards(
        name, "C10", KLEPPMANN, what, token, steps("ok"), expected, steps(last), expected,
        {"token": token},
    )  # fmt: skip


# The service keeps its leases; a client that does not look at its clock counts its own too long.
_BELIEVED_LATE = TWO_BELIEVE | {"lease_exclusion": False}

_SCENARIOS: tuple[Scenario, ...] = (
    *_both_guards(
        "clock-jump", "C1", KLEPPMANN,
        "Client 1 is granted the lock by A, B and C; the clock of C jumps, so that its key "
        "expires; client 2 is granted the lock by C, D and E. Both hold a valid lease.",
        "majority",
        _clock_jump("ok"), TWICE | DAMAGED,
        _clock_jump("fail"), TWICE | FENCED,
        ttl_ms=3000,
    ),
    *_both_guards(
        "pause-after-acquire", "C4 and C5", KLEPPMANN,
        "Client 1 pauses between its grant and its write, past its lease. Client 2 is granted "
        "the lock and writes; then client 1 wakes up and writes. No lock service can prevent "
        "it; a resource that checks fencing tokens refuses the late write.",
        "one",
        pause_after_acquire("ok"), TWO_BELIEVE | DAMAGED,
        pause_after_acquire("fail"), TWO_BELIEVE | FENCED,
    ),
    *_both_guards(
        "pause-during-acquire", "C7", SANFILIPPO,
        "Client 1 pauses while the servers' replies are in flight, until its keys have expired "
        "and client 2 has the lock. It looks at the clock after the replies, as the "
        "specification demands, and so is not granted.",
        "majority",
        _pause_during_acquire(False), KEPT,
        _pause_during_acquire(False), KEPT | FENCED,
    ),
    *_both_guards(
        "pause-during-acquire-unchecked", "C7", KLEPPMANN,
        "The same pause, as told without the look at the clock: client 1 reads the replies "
        "that its kernel kept, and believes in a lock that client 2 has by now.",
        "majority",
        _pause_during_acquire(True), _BELIEVED_LATE | DAMAGED,
        _pause_during_acquire(True, "fail"), _BELIEVED_LATE | FENCED,
        {"clock_check": False},
    ),
    *_both_guards(
        "crash-restart-empty", "C2 and C10", KLEPPMANN,
        "Client 1 is granted the lock by A, B and C; C crashes before it persisted the key and "
        "restarts at once; client 2 is granted the lock by C, D and E. A counter on the "
        "servers is lost with C, so that the tokens repeat and the fence lets both writes in.",
        "majority",
        _crash("empty"), TWICE | DAMAGED,
        _crash("empty"), TWICE | DAMAGED | {"fencing": False},
        ttl_ms=3000,
    ),
    *_both_guards(
        "crash-restart-aof-always", "C3", KLEPPMANN,
        "The same crash, with every write to C's append-only file flushed before it is "
        "answered: C still knows client 1's key, and client 2 is not granted.",
        "majority",
        _crash("full"), KEPT,
        _crash("full"), KEPT | FENCED,
        settings={"persistence": "always"}, ttl_ms=2000,
    ),
    *_both_guards(
        "power-loss-aof-everysec", "C3", KLEPPMANN,
        "C flushes its append-only file once a second, and loses power before client 1's key is "
        "on the disk; client 2 is granted the lock by C, D and E.",
        "majority",
        _crash("empty", power=True), TWICE | DAMAGED,
        _crash("empty", power=True), TWICE | DAMAGED | {"fencing": False},
        settings={"persistence": "everysec"}, ttl_ms=3000,
    ),
    *_both_guards(
        "power-loss-aof-always", "C3", KLEPPMANN,
        "The same loss of power, with every write flushed before it is answered: C still knows "
        "client 1's key, and client 2 is not granted.",
        "majority",
        _crash("full", power=True), KEPT,
        _crash("full", power=True), KEPT | FENCED,
        settings={"persistence": "always"}, ttl_ms=3000,
    ),
    *_both_guards(
        "crash-delayed-restart", "C3", SANFILIPPO,
        "The same crash without persistence, but C stays away for the longest TTL: whatever it "
        "forgot has expired when it comes back.",
        "majority",
        _crash("delayed"), KEPT,
        _crash("delayed"), KEPT | FENCED,
        ttl_ms=2000,
    ),
    *_both_guards(
        "delayed-write", "C9", KLEPPMANN,
        "Client 1's write leaves while it holds the lock and is held back in the network, as "
        "packets at GitHub were for 90 s in 2012. It arrives after client 2 has taken the lock "
        "and written: the same as a pause, without any pause.",
        "one",
        _delayed_write("ok"), TWO_BELIEVE | DAMAGED,
        _delayed_write("fail"), TWO_BELIEVE | FENCED,
    ),
    *_token_source(
        "token-counter-lost",
        "Fencing tokens counted with INCR on one server, which crashes and loses its counter: "
        "the tokens begin again, and the fence refuses the rightful holder.",
        "one", _counter_lost, "fail",
    ),
    *_token_source(
        "token-counters-diverge",
        "Fencing tokens counted on every server, the highest of a majority taken. Behind a "
        "partition the counters diverge, and a later grant carries a lower token.",
        "majority", _counters_diverge, "fail",
    ),
    *_token_source(
        "token-random-value",
        "The random value that Redlock gives each grant, read as a token: it is unique, and "
        "does not rise.",
        "value", lambda last: _values(), "any",
    ),
)  # fmt: skip

SUITE = Suite(
    name="redlock",
    what="Redlock on trial: the published schedules, then faults at random",
    lock="redlock",
    entries=(
        *controls(1000, {"token": "one"}),
        *_SCENARIOS,
        explore(1000, ("partition", "pause", "clock", "kill")),
    ),
)
