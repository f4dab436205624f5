"""The schedules of the debate about Redlock, on five servers (claims C1 to C10).

A to E of the articles are redis-1 to redis-5, clients 1 and 2 are client-1 and client-2.
"""

from __future__ import annotations

from fencepost.workloads.scenarios.scenario import (
    Begin,
    Do,
    Finish,
    Heal,
    Inject,
    LeaseOver,
    NoteTime,
    Step,
    SyncDue,
    TtlByClock,
)
from fencepost.workloads.scenarios.schedules import (
    ONE,
    STORE,
    THREE,
    TWO,
    TWO_WRITES,
    both_write,
    crash,
    cut,
    ops,
    pause_at,
)

A, B, C, D, E = (f"redis-{n}" for n in range(1, 6))

# 1 reaches only A, B, C and 2 reaches only C, D, E: C decides between them.
_SPLIT = (cut("cut-1", ONE, [D, E]), cut("cut-2", TWO, [A, B]))
_JOIN = (Heal("cut-1"), Heal("cut-2"))

# A majority has lost 1's keys, so 1 has nothing left to release. A server that was cut off or down
# a moment ago may not answer in time.
_REFUSED = Do(ONE, "release", expect="failing")
_BOTH_RELEASE = (_REFUSED, Do(TWO, "release"))


def clock_jump(last: str) -> tuple[Step, ...]:
    jump = {"offset_s": 30.0, "words": f"the clock of {C} jumps 30 s ahead"}
    return (
        *_SPLIT,
        Do(ONE, "acquire"),
        Inject("jump", "clock", (C,), jump),
        Do(TWO, "acquire"),
        *both_write(last),
        Heal("jump"),
        *_JOIN,
        *_BOTH_RELEASE,
    )


def drift(rate: float, last: str = "ok") -> tuple[Step, ...]:
    """C runs fast. 2 asks all the time, so that it is granted the lock as soon as C expires 1's
    key.

    Redlock allows for 1 % and 2 ms. C expires the key after TTL / rate, and 1 counts on less than
    0.99 TTL: at 1.01 times the rate its lease has expired by then, at a higher rate it still runs.
    """
    words = f"the clock of {C} runs at {rate:g} times its rate"
    arguments = {"kind": "drift", "clocks": ["wall"], "rate": rate, "words": words}
    beyond = rate > 1.01
    return (
        Inject("drift", "clock", (C,), arguments),
        *_SPLIT,
        Do(ONE, "acquire"),
        *(() if beyond else (Do(ONE, "read"), Do(ONE, "write"))),
        Do(TWO, "acquire", again=True),
        *(both_write(last) if beyond else (Do(TWO, "read"), Do(TWO, "write"))),
        Heal("drift"),
        *_JOIN,
        *_BOTH_RELEASE,
    )


def pause_during_acquire(granted: bool, last: str = "ok") -> tuple[Step, ...]:
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


def delay_cut_short(last: str = "ok") -> tuple[Step, ...]:
    """C must stay away for the longest TTL. Its restart goes by a clock, which jumps."""
    words = f"the wall clock of {THREE}, by which {C} is started again, jumps 30 s ahead"
    return (
        *_SPLIT,
        Do(ONE, "acquire"),
        NoteTime(THREE),
        crash("crash", C),
        Inject("jump", "clock", (THREE,), {"offset_s": 30.0, "words": words}),
        TtlByClock(THREE),
        Heal("crash"),
        Do(TWO, "acquire"),
        *both_write(last),
        Heal("jump"),
        *_JOIN,
        *_BOTH_RELEASE,
    )


def no_majority() -> tuple[Step, ...]:
    """1 gets two of five servers, and releases them: 2 needs both, and gets them at once."""
    return (
        cut("cut-1", ONE, [C, D, E]),
        Do(ONE, "acquire", expect="fail"),
        cut("cut-2", TWO, [D, E]),
        *ops(TWO, "acquire", "read", "write"),
        *_JOIN,
        Do(ONE, "acquire", expect="fail"),
        Do(TWO, "release"),
    )


def servers_down(count: int) -> tuple[Step, ...]:
    """With two of five servers down the lock is granted, with three it is not."""
    names = [f"crash-{n + 1}" for n in range(count)]
    down = tuple(crash(name, node) for name, node in zip(names, (A, B, C), strict=False))
    back = tuple(Heal(name) for name in names)
    works = (Do(TWO, "acquire"), Do(TWO, "read"), Do(TWO, "write"), Do(TWO, "release"))
    if count < 3:
        return (*down, *works, *back)
    return (*down, Do(ONE, "acquire", expect="fail"), *back, *works)


def crash_and_restart(restart: str, power: bool = False, last: str = "ok") -> tuple[Step, ...]:
    """`restart`: "empty" and "full" at once, or "delayed" until 1's lease has expired.

    With `power` lost, C's key is not synced yet, if it is synced once a second: 1's release is
    synced at once, and 1 is granted the lock within a second after that.
    """
    fault = crash("crash", C)
    first: tuple[Step, ...] = (Do(ONE, "acquire"),)
    if power:
        fault = Inject("crash", "power", (C,), {"words": f"{C} loses power"})
        first = (Do(ONE, "acquire"), SyncDue(), Do(ONE, "release"), Do(ONE, "acquire"))
    second: tuple[Step, ...]
    if restart == "empty":
        second = (
            Heal("crash"),
            Do(TWO, "acquire"),
            *both_write(last),
            *_JOIN,
            _REFUSED,
        )
    else:
        back, late = ((Heal("crash"),), ()) if restart == "full" else ((), (Heal("crash"),))
        second = (
            *back,
            Do(TWO, "acquire", expect="fail"),
            *ops(ONE, "read", "write"),
            LeaseOver(ONE),
            *late,
            _REFUSED,
            *TWO_WRITES,
            *_JOIN,
        )
    return (*_SPLIT, *first, fault, *second, Do(TWO, "release"))


def counter_lost(last: str) -> tuple[Step, ...]:
    once = (Do(ONE, "acquire"), Do(ONE, "read"), Do(ONE, "write"), Do(ONE, "release"))
    return (
        *once,
        *once,
        crash("crash", A, f"{A}, which counts, crashes and loses its data"),
        Heal("crash"),
        *ops(TWO, "acquire", "read"),
        Do(TWO, "write", expect=last),
        Do(TWO, "release"),
    )


def counters_diverge(last: str) -> tuple[Step, ...]:
    """3 reaches only A: its failed tries count there, and on no other server."""
    tries = (Do(THREE, "acquire", expect="fail"),) * 3
    return (
        cut("cut-3", THREE, [B, C, D, E]),
        *tries,
        *_SPLIT,
        *ops(ONE, "acquire", "read", "write", "release"),
        *ops(TWO, "acquire", "read"),
        Do(TWO, "write", expect=last),
        *_JOIN,
        Heal("cut-3"),
        Do(TWO, "release"),
    )


def values() -> tuple[Step, ...]:
    def turn(client: str) -> tuple[Step, ...]:
        write = Do(client, "write", expect="any")
        return (Do(client, "acquire"), Do(client, "read"), write, Do(client, "release"))

    return (turn(ONE) + turn(TWO)) * 4


def delayed_write(last: str) -> tuple[Step, ...]:
    hold = {
        "source": ONE,
        "to": STORE,
        "words": f"the packets from {ONE} to the store are delayed",
    }
    return (
        *ops(ONE, "acquire", "read"),
        Inject("delay", "delay", (ONE, STORE), hold),
        Begin(ONE, "write"),
        *TWO_WRITES,
        Heal("delay"),
        Finish(ONE, expect=last),
        Do(ONE, "release", expect="fail"),
        Do(TWO, "release"),
    )
