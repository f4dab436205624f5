"""The debate about Redlock (claims C1 to C10), each schedule with its author's prediction.

"The lock service" is what `lease_exclusion` judges, "two clients" is `mutual_exclusion`, "the data"
is `resource`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from fencepost.checker.verdict import Valid
from fencepost.workloads.scenarios.expectations import (
    DAMAGED,
    FENCED,
    KEPT,
    TWICE,
    TWO_BELIEVE,
    Expected,
)
from fencepost.workloads.scenarios.redlock_schedules import (
    clock_jump,
    counter_lost,
    counters_diverge,
    crash_and_restart,
    delay_cut_short,
    delayed_write,
    drift,
    no_majority,
    pause_during_acquire,
    servers_down,
    values,
)
from fencepost.workloads.scenarios.runs import controls, explore
from fencepost.workloads.scenarios.scenario import Scenario, Step
from fencepost.workloads.scenarios.schedules import pause_after_acquire
from fencepost.workloads.scenarios.sources import (
    COMMENTS,
    KLEPPMANN,
    OVERVIEW,
    REDIS_IO,
    SANFILIPPO,
)
from fencepost.workloads.scenarios.suite import Suite

# No schedule here depends on how soon a server answers. On a busy machine 50 ms may be too short
# for a client's first request, and the schedule would diverge.
_ONCE: dict[str, Any] = {"retries": 0, "node_timeout_ms": 150}


def _both_guards(
    name: str,
    claims: tuple[str, ...],
    source: str,
    what: str,
    token: str,
    plain: tuple[Step, ...],
    expected: Expected,
    fenced: tuple[Step, ...] | None = None,
    fenced_expected: Expected | None = None,
    options: Mapping[str, Any] | None = None,
    **settings: Any,
) -> tuple[Scenario, Scenario]:
    """The schedule against an unguarded resource, and with tokens against a fenced one.

    Without `fenced` both have the same steps; without `fenced_expected` the fence changes nothing.
    """
    chosen = {**_ONCE, **(options or {})}
    with_token = {**chosen, "token": token}
    kept = {**expected, **FENCED} if fenced_expected is None else fenced_expected
    return (
        Scenario(name, claims, source, what, "none", plain, expected, chosen, **settings),
        Scenario(
            name, claims, source, what, "fenced", fenced or plain, kept, with_token, **settings
        ),
    )


def _token_source(
    name: str, what: str, token: str, steps: Callable[[str], tuple[Step, ...]], last: str
) -> tuple[Scenario, Scenario]:
    """Return the scenario of a token source that does not order the grants: the lock itself
    works."""
    # Neither source is linearizable where tokens fall: a grant with a lower one comes too late.
    expected = KEPT | {"linearizable": False, "fencing": False}
    return _both_guards(
        name, ("C10",), KLEPPMANN, what, token, steps("ok"), expected, steps(last), expected,
        {"token": token},
    )  # fmt: skip


# The service keeps its leases; a client that does not check its clock counts its own too long.
_BELIEVED_LATE = TWO_BELIEVE | {"lease_exclusion": False}

# Random values rise or fall by chance, which decides fencing and linearizable.
_NO_ORDER: dict[str, Valid] = {
    name: valid for name, valid in TWO_BELIEVE.items() if name != "linearizable"
}
# Whether the holder of an expired lease has reported it is not judged here.
_LEASES_KEPT: dict[str, Valid] = {
    name: valid for name, valid in KEPT.items() if name != "mutual_exclusion"
}
# The counter restarts, so that the fence accepts the tokens of both.
_REPEATED: Expected = TWICE | DAMAGED | {"fencing": False}
_SLEEPS = (
    "Client 1 pauses between its grant and its write, past its lease. Client 2 is granted the lock "
    "and writes; then client 1 wakes up and writes."
)
_HELD_BACK = (
    "The network is slow after client 1 has checked its clock: its write arrives after client 2 "
    "has acquired the lock and written."
)

_SCENARIOS: tuple[Scenario, ...] = (
    *_both_guards(
        "clock-jump", ("C1",), KLEPPMANN,
        "Client 1 is granted the lock by A, B and C; the clock of C jumps, so that its key "
        "expires; client 2 is granted the lock by C, D and E. Both hold a valid lease.",
        "majority",
        clock_jump("ok"), TWICE | DAMAGED,
        clock_jump("fail"), TWICE | FENCED,
        ttl_ms=10_000,
    ),
    *_both_guards(
        "drift-allowed", ("C24",), SANFILIPPO,
        "The clock of C runs 1 % fast, which Redlock allows for: a client counts on 99 % of the "
        "TTL less 2 ms, and C keeps its key for 99.01 % of it. Client 2 asks without a pause, "
        "and is granted the lock after client 1's lease has expired. Client 1 does nothing after "
        "that, and releases late.",
        "majority",
        drift(1.01), _LEASES_KEPT,
        ttl_ms=5000,
    ),
    *_both_guards(
        "drift-beyond", ("C24",), SANFILIPPO,
        "The clock of C runs half as fast again: C keeps client 1's key for two thirds of the "
        "TTL, and client 1 counts on 99 % of it. Client 2 is granted the lock meanwhile.",
        "majority",
        drift(1.5), TWICE | DAMAGED,
        drift(1.5, "fail"), TWICE | FENCED,
        ttl_ms=5000,
    ),
    *_both_guards(
        "pause-after-acquire", ("C4", "C5", "A4"), KLEPPMANN,
        "Client 1 pauses between its grant and its write, past its lease. Client 2 is granted "
        "the lock and writes; then client 1 wakes up and writes. No lock service can prevent "
        "it; a resource that checks fencing tokens refuses the late write.",
        "one",
        pause_after_acquire("ok"), TWO_BELIEVE | DAMAGED,
        pause_after_acquire("fail"), TWO_BELIEVE | FENCED,
    ),
    *_both_guards(
        "pause-during-acquire", ("C7", "A3"), SANFILIPPO,
        "Client 1 pauses while the servers' replies are in flight, until its keys have expired "
        "and client 2 has the lock. It checks the clock after the replies, as the specification "
        "demands, and so is not granted the lock.",
        "majority",
        pause_during_acquire(False), KEPT,
    ),
    *_both_guards(
        "pause-during-acquire-unchecked", ("C7",), KLEPPMANN,
        "The same pause, without the clock check: client 1 reads the replies that its kernel "
        "buffered, and believes in a lock that client 2 has by now.",
        "majority",
        pause_during_acquire(True), _BELIEVED_LATE | DAMAGED,
        pause_during_acquire(True, "fail"), _BELIEVED_LATE | FENCED,
        {"clock_check": False},
    ),
    *_both_guards(
        "crash-restart-empty", ("C2", "C10"), KLEPPMANN,
        "Client 1 is granted the lock by A, B and C; C crashes before it persisted the key and "
        "restarts at once; client 2 is granted the lock by C, D and E. A counter on the servers "
        "is lost with C, so that the tokens repeat and the fence accepts both writes.",
        "majority",
        crash_and_restart("empty"), TWICE | DAMAGED, fenced_expected=_REPEATED,
        ttl_ms=10_000,
    ),
    *_both_guards(
        "crash-restart-aof-always", ("C3",), KLEPPMANN,
        "The same crash, with every write to C's append-only file flushed before it is answered: "
        "C still has client 1's key, and client 2 is not granted the lock.",
        "majority",
        crash_and_restart("full"), KEPT,
        settings={"persistence": "always"}, ttl_ms=2000,
    ),
    *_both_guards(
        "power-loss-aof-everysec", ("C3",), KLEPPMANN,
        "C flushes its append-only file once a second, and loses power before client 1's key is "
        "on the disk; client 2 is granted the lock by C, D and E.",
        "majority",
        crash_and_restart("empty", power=True), TWICE | DAMAGED, fenced_expected=_REPEATED,
        # The first grant must have ended before the second of C's next flush is over.
        options={"node_timeout_ms": 50}, settings={"persistence": "everysec"}, ttl_ms=3000,
    ),
    *_both_guards(
        "power-loss-aof-always", ("C3",), KLEPPMANN,
        "The same loss of power, with every write flushed before it is answered: C still has "
        "client 1's key, and client 2 is not granted the lock.",
        "majority",
        crash_and_restart("full", power=True), KEPT,
        settings={"persistence": "always"}, ttl_ms=3000,
    ),
    *_both_guards(
        "crash-delayed-restart", ("C3",), SANFILIPPO,
        "The same crash without persistence, but C stays away for the longest TTL: every key "
        "that it forgot has expired when it comes back.",
        "majority",
        crash_and_restart("delayed"), KEPT,
        ttl_ms=2000,
    ),
    *_both_guards(
        "crash-delayed-restart-jump", ("C3",), KLEPPMANN,
        "C must stay away for the longest TTL after its crash, measured by a clock, and that "
        "clock jumps ahead: C is back at once, without its keys, and client 2 is granted the "
        "lock by C, D and E.",
        "majority",
        delay_cut_short(), TWICE | DAMAGED, fenced_expected=_REPEATED,
        ttl_ms=10_000, causes=("crash",),
    ),
    *_both_guards(
        "no-majority", ("A3",), REDIS_IO,
        "Client 1 reaches only A and B, is not granted the lock, and releases them. Client 2 "
        "reaches A, B and C, and is granted it at once, long before a TTL has passed.",
        "majority",
        no_majority(), KEPT,
        ttl_ms=10_000,
    ),
    *_both_guards(
        "minority-down", ("C17", "P4"), OVERVIEW,
        "Two of five servers crash: the lock is still granted.",
        "majority",
        servers_down(2), KEPT,
    ),
    *_both_guards(
        "majority-down", ("C17",), COMMENTS,
        "Three of five servers crash: no client is granted the lock until they are back.",
        "majority",
        servers_down(3), KEPT,
    ),
    *_both_guards(
        "delayed-write", ("C9",), KLEPPMANN,
        "Client 1 sends its write while it holds the lock, and the network delays it, as packets "
        "at GitHub were for 90 s in 2012. It arrives after client 2 has acquired the lock and "
        "written: the same effect as a pause, without a pause.",
        "one",
        delayed_write("ok"), TWO_BELIEVE | DAMAGED,
        delayed_write("fail"), TWO_BELIEVE | FENCED,
    ),
    Scenario(
        "slow-network-after-look", ("C8",), COMMENTS,
        f"Client 1 checks its clock, its lease runs, and it sends its write. {_HELD_BACK}",
        "deadline", delayed_write("ok"), TWO_BELIEVE | DAMAGED, _ONCE,
    ),
    Scenario(
        "slow-network-after-look", ("C8",), COMMENTS,
        f"{_HELD_BACK} The fence refuses it.",
        "fenced", delayed_write("fail"), TWO_BELIEVE | FENCED, {**_ONCE, "token": "one"},
    ),
    Scenario(
        "random-value-compared", ("C11",), SANFILIPPO,
        f"{_SLEEPS} The resource compares the version that the writer has read, and refuses "
        "client 1: it needs no rising token, and no token at all.",
        "compare-and-set", pause_after_acquire("fail"), _NO_ORDER | {"resource": True},
        {**_ONCE, "token": "value"},
    ),
    Scenario(
        "random-value-shown", ("C11",), KLEPPMANN,
        f"{_SLEEPS} The resource gets the random value of each grant. Client 1's is new to it, so "
        "it accepts the late write.",
        "new-value", pause_after_acquire("ok"), _NO_ORDER | DAMAGED,
        {**_ONCE, "token": "value"},
    ),
    *_token_source(
        "token-counter-lost",
        "Fencing tokens counted with INCR on one server, which crashes and loses its counter: "
        "the tokens restart, and the fence refuses the rightful holder.",
        "one", counter_lost, "fail",
    ),
    *_token_source(
        "token-counters-diverge",
        "Fencing tokens counted on every server, the highest of a majority taken. Behind a "
        "partition the counters diverge, and a later grant carries a lower token.",
        "majority", counters_diverge, "fail",
    ),
    *_token_source(
        "token-random-value",
        "The random value that Redlock gives each grant, read as a token: it is unique, but does "
        "not rise.",
        "value", lambda last: values(), "any",
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
