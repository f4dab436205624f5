"""Schedules that are the same for every lock: pauses, crashes, links cut.

Clients 1 and 2 of the articles are client-1 and client-2.
"""

from __future__ import annotations

from fencepost.workloads.scenarios.scenario import (
    Begin,
    Do,
    Finish,
    Heal,
    Inject,
    LeaseOver,
    Step,
    TtlOver,
)

ONE, TWO, THREE = (f"client-{n}" for n in range(1, 4))
STORE = "storage"


def ops(client: str, *fs: str) -> tuple[Do, ...]:
    """Let a client do these ops in turn, each of which is answered ok."""
    return tuple(Do(client, f) for f in fs)


def both_write(last: str = "ok") -> tuple[Do, ...]:
    """Both clients read the same version. 2 writes and then 1, which overwrites that."""
    return (Do(ONE, "read"), *ops(TWO, "read", "write"), Do(ONE, "write", expect=last))


TWO_WRITES = (Do(TWO, "acquire", again=True), *ops(TWO, "read", "write"))
"""Client 2 asks until it is granted the lock, and writes."""


def cut(name: str, client: str, servers: list[str]) -> Inject:
    links = [[client, server] for server in servers]
    words = f"{client} is cut off from {', '.join(servers)}"
    return Inject(name, "partition", (client, *servers), {"links": links, "words": words})


def crash(name: str, node: str, words: str = "") -> Inject:
    return Inject(name, "kill", (node,), {"words": words or f"{node} crashes"})


def pause_at(name: str, client: str, f: str, point: str, when: str) -> tuple[Step, ...]:
    """Let the client begin an op and pause at a failpoint of its code; `when` describes it."""
    words = f"{client} is paused {when}"
    return (
        Begin(client, f, stop_at=point),
        Inject(name, "pause", (client,), {"point": point, "words": words}),
    )


def pause_before_write(name: str, client: str) -> tuple[Step, ...]:
    return pause_at(name, client, "write", "before-write", "before its write is sent")


def pause_after_acquire(last: str, release: str = "fail") -> tuple[Step, ...]:
    """Client 1 pauses past its lease, client 2 works meanwhile; then client 1's write arrives."""
    return (
        *ops(ONE, "acquire", "read"),
        *pause_before_write("pause", ONE),
        *TWO_WRITES,
        Heal("pause"),
        Finish(ONE, expect=last),
        Do(ONE, "release", expect=release),
        Do(TWO, "release"),
    )


def holder_dies() -> tuple[Step, ...]:
    """The holder crashes; the lock becomes available when its lease or session expires."""
    return (
        *ops(ONE, "acquire", "read"),
        crash("crash", ONE),
        *TWO_WRITES,
        Do(TWO, "release"),
        Heal("crash"),
    )


def holder_cut_off(servers: list[str]) -> tuple[Step, ...]:
    """The holder is cut off from the service, and notices by its own clock."""
    return (
        Do(ONE, "acquire"),
        cut("cut", ONE, servers),
        *TWO_WRITES,
        Do(TWO, "release"),
        Heal("cut"),
        Do(ONE, "release", expect="fail"),
    )


def server_down(server: str) -> tuple[Step, ...]:
    """One of several servers crashes: the lock is still granted."""
    turn = (Do(TWO, "read"), Do(TWO, "write"), Do(TWO, "release"))
    return (
        *ops(ONE, "acquire", "release"),
        crash("crash", server),
        Do(TWO, "acquire", again=True),
        *turn,
        Do(TWO, "acquire", again=True),
        *turn,
        Heal("crash"),
    )


def majority_down(first: str, second: str) -> tuple[Step, ...]:
    """Without a majority the lock is not granted; with it again, it is."""
    return (
        crash("crash-1", first),
        crash("crash-2", second),
        Do(ONE, "acquire", expect="failing"),
        Heal("crash-1"),
        Heal("crash-2"),
        *TWO_WRITES,
        Do(TWO, "release"),
    )


def both_stall(last: str) -> tuple[Step, ...]:
    """Both clients pause past their leases and then write in the order of their tokens (C12)."""
    return (
        *ops(ONE, "acquire", "read"),
        *pause_before_write("pause-1", ONE),
        Do(TWO, "acquire", again=True),
        Do(TWO, "read"),
        *pause_before_write("pause-2", TWO),
        TtlOver(),
        Heal("pause-1"),
        Finish(ONE),
        Heal("pause-2"),
        Finish(TWO, expect=last),
        Do(ONE, "release", expect="fail"),
        Do(TWO, "release", expect="fail"),
    )


def no_lock_at_all() -> tuple[Step, ...]:
    """Both read, both write: the second to arrive is refused, reads again and succeeds (C13)."""
    return (
        Do(ONE, "acquire"),
        Do(TWO, "acquire"),
        Do(ONE, "read"),
        Do(TWO, "read"),
        *pause_before_write("pause", ONE),
        Do(TWO, "write"),
        Heal("pause"),
        Finish(ONE, expect="fail"),
        *ops(ONE, "read", "write", "release"),
        Do(TWO, "release"),
    )


def late_release(last: str, third: str) -> tuple[Step, ...]:
    """Client 1 releases after its lease has expired, while client 2 has the lock."""
    return (
        Do(ONE, "acquire"),
        LeaseOver(ONE),
        Do(TWO, "acquire", again=True),
        Do(ONE, "release", expect=last),
        Do(THREE, "acquire", expect=third),
        Do(TWO, "release", expect="any"),
    )
