"""Skews the clocks of one running process, by rewriting its vDSO in place.

Programs ask for the time through functions that the kernel maps into every process, the vDSO: the C
library does, and so do Go's runtime and the JVM, which libfaketime does not reach. Here these
functions are redirected to new code (patch.py). Writing through /proc/PID/mem gives the process its
own copy of that page; only processes that it forks later see the change.

    vdso set PID --clocks wall,monotonic [--offset-ns N] [--rate R] [--period-ns N]
    vdso rest [PID]      set the clocks right, but let no monotonic clock go back
    vdso undo [PID]      put the kernel's own bytes back
    vdso show [PID]      show the current offsets of its clocks

PID includes its descendants; without PID all processes are meant. Correcting a monotonic clock that
was ahead would set it back, which must not happen: timers of a Go or Java program, heartbeats
included, would be late by as much. So `rest` ends a skew but leaves such a clock ahead, running at
the right rate until the process ends; if none is ahead, it does the same as `undo`. A later `set`
adds to it.

`set` replaces an earlier skew. A file also records the skew, and launch.py restarts a server under
it; `rest` and `undo` remove the file. The kernel's own bytes are read from the vDSO of this
process, so that undoing needs no record of the changes. Answers are JSON.

Limits: a program that makes the system call itself is not affected. The kernel's own timing is not
either: a sleep or a poll's timeout follows the right clock, and so do waits that began before.
Deadlines of pthread_cond_timedwait, which all timed waits of the JVM use, are corrected on their
way to the kernel (waits.py).
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
    """Return the kernel's own vDSO, which this process has."""
    own = image("self").content
    assert MAGIC not in own, "this process is skewed itself"
    return own


def skew(pid: int, entries: Table, still: bool = False) -> None:
    """Skew a process; `still`: it is stopped already, traced by this one.

    Raises:
        Refused: its vDSO is neither the kernel's own nor one that fencepost patched.
        OSError: the process does not exist, or permission is denied.
    """
    own, found = pristine(), image(pid)
    before = read(found.content)
    if found.content != (before.on(own) if before else own):
        raise Refused(f"the vDSO of process {pid} was changed by another program")
    there, ours = slots(pid), _ours(own, found)
    held = [holds for holds in there.values() if holds != ours]
    wait = before.wait if before and before.wait else max(held, key=held.count, default=0)
    new = Patch(entries, wait)
    leading = [at for at, holds in there.items() if holds == wait]
    _write(pid, found.start, new.pieces(own), dict.fromkeys(leading, ours), still)
    if image(pid).content != new.on(own):
        raise Refused(f"the vDSO of process {pid} does not contain the bytes just written")


def undo(pid: int) -> dict[str, int]:
    """Restore the original bytes; return the offsets of the clocks, empty if they were right."""
    found = image(pid)
    before = read(found.content)
    if before is None:
        return {}
    own = pristine()
    back = {at: own[at : at + len(piece)] for at, piece in before.pieces(own).items()}
    leading = [at for at, holds in slots(pid).items() if holds == _ours(own, found)]
    _write(pid, found.start, back, dict.fromkeys(leading, before.wait))
    if image(pid).content != own:
        raise Refused(f"the vDSO of process {pid} was not restored to the kernel's own")
    return offsets(before.entries)


def _ours(own: bytes, found: Image) -> int:
    """Return the address of fencepost's `timedwait` in a process."""
    return found.start + code_at(own) + stubs().timedwait


def elsewhere(pid: int) -> set[int]:
    """Return the slots that do not lead to fencepost's `timedwait`."""
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
    """Return the pid of every process here that is skewed."""
    for pid in everyone():
        try:
            found = read(image(pid).content)
        except (Refused, OSError):
            continue  # a kernel thread, one that has just ended, or no permission
        if found is not None:
            yield pid


# The file applies to processes started later.


@contextmanager
def alone() -> Iterator[None]:
    """Hold a lock, so that a starting server does not set again what is undone here."""
    os.makedirs(os.path.dirname(FILE), exist_ok=True)
    with open(FILE + ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def keep(entries: Table) -> None:
    rows = {id: [e.base_ns, e.offset_ns, e.rate, e.period_ns] for id, e in entries.items()}
    with open(FILE + ".new", "w") as new:
        json.dump(rows, new)
    os.replace(FILE + ".new", FILE)


def read_table() -> Table | None:
    try:
        with open(FILE) as rows:
            return {int(id): Entry(*row) for id, row in json.load(rows).items()}
    except FileNotFoundError:
        return None


# The command.


def command(arguments: list[str]) -> dict[str, object]:
    """Run one call; return its answer. Refused or OSError if it cannot be carried out."""
    given = _parser().parse_args(arguments)
    with alone():
        return _carry_out(given)


def _carry_out(given: argparse.Namespace) -> dict[str, object]:
    if given.verb == "set":
        return _set(given)
    if given.verb == "show":
        pids = list(skewed()) if given.pid is None else [given.pid]
        return {"offset_ns": {pid: _offsets(pid) for pid in pids}, "kept": read_table() is not None}
    if os.path.exists(FILE):
        os.remove(FILE)
    act = undo if given.verb == "undo" else rest
    return {"offset_ns": _each(lambda: skewed() if given.pid is None else family(given.pid), act)}


def _set(given: argparse.Namespace) -> dict[str, object]:
    ahead_ns, clocks = _ahead(given.pid), given.clocks.split(",")
    if ahead_ns and given.period_ns and "monotonic" in clocks:
        raise Refused(f"the monotonic clock of process {given.pid} is ahead: it cannot strobe")
    # Only the wall clock is set: a monotonic one that is ahead stays so.
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
    """Apply it to all of these processes, and to those forked meanwhile."""
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
    """Return the current offsets of a process' clocks, in ns; of a strobe, its amplitude."""
    found = read(image(pid).content)
    return offsets(found.entries) if found else {}


def _ahead(pid: int) -> int:
    """Return how far ahead a process' monotonic clock stays whatever is set now, in ns."""
    found = read(image(pid).content)
    return offsets(resting(found.entries)).get("monotonic", 0) if found else 0


def rest(pid: int) -> dict[str, int]:
    """End the skew of a process; return the offsets that remain."""
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
