"""Skews the clocks of one running process, by rewriting its vDSO in place.

Programs ask for the time through functions that the kernel maps into every process, the vDSO:
the C library does, and so do Go's runtime and the JVM, which libfaketime does not reach. Here
these functions are made to go on in code of our own (patch.py). Writing through /proc/PID/mem
gives the process its own copy of that page; no other process sees a change, but those that it
forks from then on.

    vdso set PID --clocks wall,monotonic [--offset-ns N] [--rate R] [--period-ns N]
    vdso rest [PID]      set the clocks right, but let no monotonic clock go back
    vdso undo [PID]      put the kernel's own bytes back
    vdso show [PID]      how far off its clocks are now

PID stands for all that it has forked, too; without PID it is every process. A monotonic clock
that was ahead and is set right goes back, which none ever does: what a Go or Java program has
timed by then is late by as much, its heart beat as well. So `rest` ends a skew and leaves such a
clock as far ahead as it is, running at the right rate until the process ends; where none is
ahead, it is `undo`. A later `set` adds to it.

`set` replaces what an earlier one has set. The skew also stands in a file, and launch.py starts
a server again under it; `rest` and `undo` remove that. The kernel's own bytes are read from the
vDSO of this process, so that undoing needs no memory of what was done. Answers are JSON.

What it cannot do: a program that makes the system call itself is not reached, nor is what the
kernel itself measures: a sleep or a poll's timeout takes its time by the right clock, and so do
waits that were begun before. Deadlines of pthread_cond_timedwait, which all of the JVM's timed
waits come down to, are put right on their way to the kernel (waits.py).
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import struct
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from typing import TypeVar

from fencepost.node.image import Image, Refused, image
from fencepost.node.patch import (
    MAGIC,
    Entry,
    Patch,
    Table,
    code_at,
    offsets,
    read,
    resting,
    stubs,
    table,
)
from fencepost.node.processes import everyone, family, lives
from fencepost.node.tracing import stopped
from fencepost.node.waits import slots

FILE = "/run/fencepost/skew"


def pristine() -> bytes:
    """The kernel's own vDSO, which this process has."""
    own = image("self").content
    assert MAGIC not in own, "this process is skewed itself"
    return own


def skew(pid: int, entries: Table, still: bool = False) -> None:
    """Skew a process; `still` where it stands still already, traced by this one.

    Raises:
        Refused: its vDSO is neither the kernel's own nor of our making.
        OSError: there is no such process, or no permission.
    """
    own, found = pristine(), image(pid)
    before = read(found.content)
    if found.content != (before.on(own) if before else own):
        raise Refused(f"the vDSO of process {pid} was changed by somebody else")
    there, ours = slots(pid), _ours(own, found)
    held = [holds for holds in there.values() if holds != ours]
    wait = before.wait if before and before.wait else max(held, key=held.count, default=0)
    new = Patch(entries, wait)
    leading = [at for at, holds in there.items() if holds == wait]
    _write(pid, found.start, new.pieces(own), dict.fromkeys(leading, ours), still)
    if image(pid).content != new.on(own):
        raise Refused(f"the vDSO of process {pid} does not hold what was written into it")


def undo(pid: int) -> dict[str, int]:
    """Put back what was there before; how far the clocks were off, empty where they were not."""
    found = image(pid)
    before = read(found.content)
    if before is None:
        return {}
    own = pristine()
    back = {at: own[at : at + len(piece)] for at, piece in before.pieces(own).items()}
    leading = [at for at, holds in slots(pid).items() if holds == _ours(own, found)]
    _write(pid, found.start, back, dict.fromkeys(leading, before.wait))
    if image(pid).content != own:
        raise Refused(f"the vDSO of process {pid} is not the kernel's own again")
    return offsets(before.entries)


def _ours(own: bytes, found: Image) -> int:
    """The address of our `timedwait` in a process."""
    return found.start + code_at(own) + stubs().timedwait


def elsewhere(pid: int) -> set[int]:
    """The slots that lead to no `timedwait` of ours."""
    ours = _ours(pristine(), image(pid))
    return {at for at, holds in slots(pid).items() if holds != ours}


def _write(
    pid: int, start: int, pieces: dict[int, bytes], slots: dict[int, int], still: bool = False
) -> None:
    ranges = [(start + at, start + at + len(piece)) for at, piece in pieces.items()]
    hold = nullcontext() if still else stopped(pid, ranges)
    with hold, open(f"/proc/{pid}/mem", "r+b", buffering=0) as memory:
        for at, piece in pieces.items():
            os.pwrite(memory.fileno(), piece, start + at)
        for at, function in slots.items():
            os.pwrite(memory.fileno(), struct.pack("<Q", function), at)


def skewed() -> Iterator[int]:
    """The pid of every process here that is skewed."""
    for pid in everyone():
        try:
            found = read(image(pid).content)
        except (Refused, OSError):
            continue  # a kernel thread, one that has just ended, or not ours to see
        if found is not None:
            yield pid


# The file, for what is started later.


@contextmanager
def alone() -> Iterator[None]:
    """One at a time: what is undone here must not be set again by what starts a server."""
    os.makedirs(os.path.dirname(FILE), exist_ok=True)
    with open(FILE + ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def keep(entries: Table) -> None:
    rows = {id: [e.base_ns, e.offset_ns, e.rate, e.period_ns] for id, e in entries.items()}
    with open(FILE + ".new", "w") as new:
        json.dump(rows, new)
    os.replace(FILE + ".new", FILE)


def kept() -> Table | None:
    try:
        with open(FILE) as rows:
            return {int(id): Entry(*row) for id, row in json.load(rows).items()}
    except FileNotFoundError:
        return None


# The command.


def command(arguments: list[str]) -> dict[str, object]:
    """Carry out one call; its answer. Refused or OSError where it cannot."""
    given = _parser().parse_args(arguments)
    with alone():
        return _carry_out(given)


def _carry_out(given: argparse.Namespace) -> dict[str, object]:
    if given.verb == "set":
        return _set(given)
    if given.verb == "show":
        pids = list(skewed()) if given.pid is None else [given.pid]
        return {"offset_ns": {pid: _offsets(pid) for pid in pids}, "kept": kept() is not None}
    if os.path.exists(FILE):
        os.remove(FILE)
    act = undo if given.verb == "undo" else rest
    return {"offset_ns": _each(lambda: skewed() if given.pid is None else family(given.pid), act)}


def _set(given: argparse.Namespace) -> dict[str, object]:
    ahead_ns, clocks = _ahead(given.pid), given.clocks.split(",")
    if ahead_ns and given.period_ns and "monotonic" in clocks:
        raise Refused(f"the monotonic clock of process {given.pid} is ahead: it cannot strobe")
    # A wall clock alone is set: a monotonic one that is ahead stays so.
    entries = table("monotonic", ahead_ns, 1.0, 0) if ahead_ns else {}
    for clock in clocks:
        offset_ns = given.offset_ns + (ahead_ns if clock == "monotonic" else 0)
        entries |= table(clock, offset_ns, given.rate, given.period_ns)
    skew(given.pid, entries)
    keep(entries)
    _each(lambda: family(given.pid), lambda pid: skew(pid, entries))
    return {"ahead_ns": ahead_ns}


Result = TypeVar("Result")


def _each(pids: Callable[[], Iterable[int]], act: Callable[[int], Result]) -> dict[int, Result]:
    """Do it to all of these processes, and to what they have forked meanwhile."""
    done: dict[int, Result] = {}
    gone: set[int] = set()
    while new := set(pids()) - done.keys() - gone:
        for pid in new:
            try:
                done[pid] = act(pid)
            except (OSError, Refused):
                if lives(pid):
                    raise
                gone.add(pid)
    return done


def _offsets(pid: int) -> dict[str, int]:
    """How far off the clocks of a process are now, in ns; of a strobe, how far at most."""
    found = read(image(pid).content)
    return offsets(found.entries) if found else {}


def _ahead(pid: int) -> int:
    """How far ahead a process' monotonic clock is, and stays whatever is set now, in ns."""
    found = read(image(pid).content)
    return offsets(resting(found.entries)).get("monotonic", 0) if found else 0


def rest(pid: int) -> dict[str, int]:
    """End the skew of a process; how far its clocks stay off."""
    found = read(image(pid).content)
    if found is None:
        return {}
    if found.entries != (left := resting(found.entries)) and left:
        skew(pid, left)
    elif not left:
        undo(pid)
    return offsets(left)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("vdso")
    verbs = parser.add_subparsers(dest="verb", required=True)
    set_ = verbs.add_parser("set")
    set_.add_argument("pid", type=int)
    set_.add_argument("--clocks", required=True)
    set_.add_argument("--offset-ns", type=int, default=0)
    set_.add_argument("--rate", type=float, default=1.0)
    set_.add_argument("--period-ns", type=int, default=0)
    for verb in ("rest", "undo", "show"):
        verbs.add_parser(verb).add_argument("pid", type=int, nargs="?")
    return parser
