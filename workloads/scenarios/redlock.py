"""The debate about Redlock as schedules (claims C1 to C10), each against its author's prediction.

A to E of the articles are redis-1 to redis-5, clients 1 and 2 are client-1 and client-2. "The
lock service" is what `lease_exclusion` judges, "two clients" is `mutual_exclusion`, "the data"
is `resource`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

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

KLEPPMANN = "Martin Kleppmann, How to do distributed locking, 2016"
SANFILIPPO = "Salvatore Sanfilippo, Is Redlock safe?, 2016"
A, B, C, D, E = (f"redis-{n}" for n in range(1, 6))
ONE, TWO, THREE = (f"client-{n}" for n in range(1, 4))
STORE = "storage"

SERVICE_BROKEN = {"lease_exclusion": False, "mutual_exclusion": False}
SERVICE_KEPT = {"lease_exclusion": True, "mutual_exclusion": True}
TWO_BELIEVE = {"lease_exclusion": True, "mutual_exclusion": False}
OTHERS_KEPT = {"ownership": True, "liveness": True}


def _cut(name: str, client: str, *servers: str) -> Inject:
    links = [[client, server] for server in servers]
    words = f"{client} is cut off from {', '.join(servers)}"
    return Inject(name, "partition", (client, *servers), {"links": links, "words": words})


# 1 reaches A, B, C only and 2 reaches C, D, E only: C alone decides between them.
_SPLIT = (_cut("cut-1", ONE, D, E), _cut("cut-2", TWO, A, B))
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


def _pause_after_acquire(last: str) -> tuple[Step, ...]:
    pause = {"point": "before-write", "words": f"{ONE} is paused before its write is sent"}
    return (
        Do(ONE, "acquire"),
        Do(ONE, "read"),
        Begin(ONE, "write", stop_at="before-write"),
        Inject("pause", "pause", (ONE,), pause),
        Do(TWO, "acquire", again=True),
        Do(TWO, "read"),
        Do(TWO, "write"),
        Heal("pause"),
        Finish(ONE, expect=last),
        Do(ONE, "release", expect="fail"),
        Do(TWO, "release"),
    )


def _pause_during_acquire(granted: bool, last: str = "ok") -> tuple[Step, ...]:
    pause = {
        "point": "replies-in-flight",
        "words": f"{ONE} is paused with the servers' replies in flight",
    }
    one = (Do(ONE, "read"),) if granted else ()
    writes = (Do(TWO, "write"), Do(ONE, "write", expect=last)) if granted else (Do(TWO, "write"),)
    return (
        Begin(ONE, "acquire", stop_at="replies-in-flight"),
        Inject("pause", "pause", (ONE,), pause),
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
    crash = Inject("crash", "kill", (C,), {"words": f"{C} crashes"})
    first: tuple[Step, ...] = (Do(ONE, "acquire"),)
    if power:
        crash = Inject("crash", "power", (C,), {"words": f"{C} loses power"})
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
    return (*_SPLIT, *first, crash, *second, Do(TWO, "release"))


def _counter_lost(last: str) -> tuple[Step, ...]:
    once = (Do(ONE, "acquire"), Do(ONE, "read"), Do(ONE, "write"), Do(ONE, "release"))
    return (
        *once,
        *once,
        Inject("crash", "kill", (A,), {"words": f"{A}, which counts, crashes and loses its data"}),
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
        _cut("cut-3", THREE, B, C, D, E),
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
    plain_expected: Mapping[str, bool],
    fenced: tuple[Step, ...],
    fenced_expected: Mapping[str, bool],
    options: Mapping[str, Any] | None = None,
    **settings: Any,
) -> tuple[Scenario, Scenario]:
    """The schedule against an unguarded resource, and with tokens against a fenced one."""
    chosen = {"retries": 0, **(options or {})}
    return (
        Scenario(
            name, claim, source, what, "none", plain, {**OTHERS_KEPT, **plain_expected},
            chosen, **settings,
        ),
        Scenario(
            name, claim, source, what, "fenced", fenced, {**OTHERS_KEPT, **fenced_expected},
            {**chosen, "token": token}, **settings,
        ),
    )  # fmt: skip


def _token_source(
    name: str, what: str, token: str, steps: Callable[[str], tuple[Step, ...]], last: str
) -> tuple[Scenario, Scenario]:
    """A source of tokens that does not order the grants: the lock itself works."""
    expected = {**SERVICE_KEPT, "fencing": False, "resource": True}
    return _both_guards(
        name, "C10", KLEPPMANN, what, token, steps("ok"), expected, steps(last), expected,
        {"token": token},
    )  # fmt: skip


_DAMAGED = {"resource": False}
_SAVED = {"resource": True, "fencing": True}
_UNHARMED = {"resource": True}

SCENARIOS: tuple[Scenario, ...] = (
    *_both_guards(
        "clock-jump", "C1", KLEPPMANN,
        "Client 1 is granted the lock by A, B and C; the clock of C jumps, so that its key "
        "expires; client 2 is granted the lock by C, D and E. Both hold a valid lease.",
        "majority",
        _clock_jump("ok"), {**SERVICE_BROKEN, **_DAMAGED},
        _clock_jump("fail"), {**SERVICE_BROKEN, **_SAVED},
        ttl_ms=3000,
    ),
    *_both_guards(
        "pause-after-acquire", "C4 and C5", KLEPPMANN,
        "Client 1 pauses between its grant and its write, past its lease. Client 2 is granted "
        "the lock and writes; then client 1 wakes up and writes. No lock service can prevent "
        "it; a resource that checks fencing tokens refuses the late write.",
        "one",
        _pause_after_acquire("ok"), {**TWO_BELIEVE, **_DAMAGED},
        _pause_after_acquire("fail"), {**TWO_BELIEVE, **_SAVED},
    ),
    *_both_guards(
        "pause-during-acquire", "C7", SANFILIPPO,
        "Client 1 pauses while the servers' replies are in flight, until its keys have expired "
        "and client 2 has the lock. It looks at the clock after the replies, as the "
        "specification demands, and so is not granted.",
        "majority",
        _pause_during_acquire(False), {**SERVICE_KEPT, **_UNHARMED},
        _pause_during_acquire(False), {**SERVICE_KEPT, **_SAVED},
    ),
    *_both_guards(
        "pause-during-acquire-unchecked", "C7", KLEPPMANN,
        "The same pause, as told without the look at the clock: client 1 reads the replies "
        "that its kernel kept, and believes in a lock that client 2 has by now.",
        "majority",
        _pause_during_acquire(True), {**SERVICE_BROKEN, **_DAMAGED},
        _pause_during_acquire(True, "fail"), {**SERVICE_BROKEN, **_SAVED},
        {"clock_check": False},
    ),
    *_both_guards(
        "crash-restart-empty", "C2 and C10", KLEPPMANN,
        "Client 1 is granted the lock by A, B and C; C crashes before it persisted the key and "
        "restarts at once; client 2 is granted the lock by C, D and E. A counter on the "
        "servers is lost with C, so that the tokens repeat and the fence lets both writes in.",
        "majority",
        _crash("empty"), {**SERVICE_BROKEN, **_DAMAGED},
        _crash("empty"), {**SERVICE_BROKEN, **_DAMAGED, "fencing": False},
        ttl_ms=3000,
    ),
    *_both_guards(
        "crash-restart-aof-always", "C3", KLEPPMANN,
        "The same crash, with every write to C's append-only file flushed before it is "
        "answered: C still knows client 1's key, and client 2 is not granted.",
        "majority",
        _crash("full"), {**SERVICE_KEPT, **_UNHARMED},
        _crash("full"), {**SERVICE_KEPT, **_SAVED},
        settings={"persistence": "always"}, ttl_ms=2000,
    ),
    *_both_guards(
        "power-loss-aof-everysec", "C3", KLEPPMANN,
        "C flushes its append-only file once a second, and loses power before client 1's key is "
        "on the disk; client 2 is granted the lock by C, D and E.",
        "majority",
        _crash("empty", power=True), {**SERVICE_BROKEN, **_DAMAGED},
        _crash("empty", power=True), {**SERVICE_BROKEN, **_DAMAGED, "fencing": False},
        settings={"persistence": "everysec"}, ttl_ms=3000,
    ),
    *_both_guards(
        "power-loss-aof-always", "C3", KLEPPMANN,
        "The same loss of power, with every write flushed before it is answered: C still knows "
        "client 1's key, and client 2 is not granted.",
        "majority",
        _crash("full", power=True), {**SERVICE_KEPT, **_UNHARMED},
        _crash("full", power=True), {**SERVICE_KEPT, **_SAVED},
        settings={"persistence": "always"}, ttl_ms=3000,
    ),
    *_both_guards(
        "crash-delayed-restart", "C3", SANFILIPPO,
        "The same crash without persistence, but C stays away for the longest TTL: whatever it "
        "forgot has expired when it comes back.",
        "majority",
        _crash("delayed"), {**SERVICE_KEPT, **_UNHARMED},
        _crash("delayed"), {**SERVICE_KEPT, **_SAVED},
        ttl_ms=2000,
    ),
    *_both_guards(
        "delayed-write", "C9", KLEPPMANN,
        "Client 1's write leaves while it holds the lock and is held back in the network, as "
        "packets at GitHub were for 90 s in 2012. It arrives after client 2 has taken the lock "
        "and written: the same as a pause, without any pause.",
        "one",
        _delayed_write("ok"), {**TWO_BELIEVE, **_DAMAGED},
        _delayed_write("fail"), {**TWO_BELIEVE, **_SAVED},
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
