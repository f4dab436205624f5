#!/usr/bin/env python3
"""Skews the clocks of one running process, by rewriting its vDSO in place.

Programs ask for the time through functions that the kernel maps into every process, the vDSO:
the C library does, and so do Go's runtime and the JVM, which libfaketime does not reach. Here
these functions are made to go on in code of our own (stubs.py), which stands in the unused end
of the vDSO's last page. Writing through /proc/PID/mem gives the process a copy of that page;
no other process sees a change, but those that it forks from then on.

    vdso set PID --clocks wall,monotonic [--offset-ns N] [--rate R] [--period-ns N]
    vdso undo [PID]      put the kernel's own bytes back, in every process without PID
    vdso show [PID]      which processes are skewed, and how

`set` replaces what an earlier one has set. The skew also stands in a file, and launch.py starts
a server again under it; `undo` removes that. The kernel's own bytes are read from the
vDSO of this process, so that undoing needs no memory of what was done. Answers are JSON.

What it can not do: a program that makes the system call itself is not reached, nor is what the
kernel itself measures: a sleep, a poll's timeout, a deadline handed to the kernel. The JVM's
timed waits are such deadlines: after a jump of the monotonic clock they end that much later,
or at once.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import struct
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass

from stubs import ENTRIES, ENTRY, STUBS, TABLE_SIZE, jump
from tracing import stopped

FILE = "/run/fencepost/skew"
CLOCKS = {
    "wall": (time.CLOCK_REALTIME, 5, 11),  # 5: REALTIME_COARSE, 11: TAI
    "monotonic": (time.CLOCK_MONOTONIC, 4, 6, 7),  # MONOTONIC_RAW, MONOTONIC_COARSE, BOOTTIME
}
_MAGIC = b"fencepost skew 1"
_MACHINE = platform.machine()


class Refused(Exception):
    """What was asked for can not be done here; the text says why."""


@dataclass(frozen=True)
class Entry:
    """How one clock is skewed; see stubs.py."""

    base_ns: int = 0
    offset_ns: int = 0
    rate: int = 0
    period_ns: int = 0

    def packed(self) -> bytes:
        return ENTRY.pack(self.base_ns, self.offset_ns, self.rate, self.period_ns)


Table = dict[int, Entry]
"""Entries by clock id; an id without one goes right."""


def table(clocks: list[str], offset_ns: int, rate: float, period_ns: int) -> Table:
    """Entries for these clocks, from now on.

    Raises:
        Refused: no such clock, one that would run backwards, or show a time before zero.
    """
    if unknown := [clock for clock in clocks if clock not in CLOCKS]:
        raise Refused(f"there is no clock {unknown[0]!r}; there are: {', '.join(CLOCKS)}")
    if not 0 <= rate <= 1000:
        raise Refused(f"a rate of {rate:g}: from 0 (it stands still) to 1000")
    entries = {}
    for clock in clocks:
        for id in CLOCKS[clock]:
            now = time.clock_gettime_ns(id)
            if not 0 <= now + offset_ns < 1 << 62:
                raise Refused(
                    f"an offset of {offset_ns / 1e9:+g} s: the {clock} clock is at "
                    f"{now / 1e9:.0f} s, and can not be set to less than 0"
                )
            entries[id] = Entry(now, offset_ns, round((rate - 1) * 2**32), period_ns)
    return entries


# The image of a process' vDSO.


@dataclass(frozen=True)
class Image:
    """A vDSO: where it is mapped, and its bytes."""

    start: int
    content: bytes


def image(pid: int | str) -> Image:
    """The vDSO of a process.

    Raises:
        Refused: it has none, or not one for this machine's own programs.
        OSError: there is no such process, or no permission.
    """
    with open(f"/proc/{pid}/maps") as file:
        mapped = re.search(r"^(\w+)-(\w+) .*\[vdso\]$", file.read(), re.MULTILINE)
    if mapped is None:
        raise Refused(f"process {pid} has no vDSO: its clock can not be reached")
    start, end = int(mapped[1], 16), int(mapped[2], 16)
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        content = os.pread(memory.fileno(), end - start, start)
    if content[:6] != b"\x7fELF\x02\x01":
        raise Refused(f"process {pid} is no 64-bit program: its clock can not be reached")
    return Image(start, content)


def functions(content: bytes) -> dict[str, int]:
    """Where each of the vDSO's functions begins, from its dynamic symbols (ELF-64)."""
    (sections_at,) = struct.unpack_from("<Q", content, 0x28)
    size, count = struct.unpack_from("<HH", content, 0x3A)
    sections = [
        struct.unpack_from("<IIQQQQIIQQ", content, sections_at + n * size) for n in range(count)
    ]
    found = {}
    for _, kind, _, _, at, length, link, *_ in sections:
        if kind != 11:  # SHT_DYNSYM
            continue
        names = content[sections[link][4] :]
        for symbol in range(at, at + length, 24):
            name, info, _, _, value, _ = struct.unpack_from("<IBBHQQ", content, symbol)
            if info & 15 == 2:  # a function
                found[names[name : names.index(b"\0", name)].decode()] = value
    return found


# What is written into it.


@dataclass(frozen=True)
class Patch:
    """Bytes to write into an image of this kernel, by offset."""

    pieces: dict[int, bytes]

    def on(self, content: bytes) -> bytes:
        for at, piece in self.pieces.items():
            content = content[:at] + piece + content[at + len(piece) :]
        return content

    def ranges(self, start: int) -> list[tuple[int, int]]:
        return [(start + at, start + at + len(piece)) for at, piece in self.pieces.items()]


def patch(own: bytes, entries: Table) -> Patch:
    """The patch that skews by these entries, for the kernel's own vDSO.

    Raises:
        Refused: this machine's vDSO is not known, or leaves no room.
    """
    stubs = STUBS.get(_MACHINE)
    there = functions(own)
    if stubs is None or not set(stubs.entries) <= set(there):
        raise Refused(f"the vDSO of this kernel ({_MACHINE}) has not the functions to replace")
    at = _room(own, len(_MAGIC) + TABLE_SIZE + len(stubs.code))
    rows = [entries.get(id, Entry()).packed() for id in range(ENTRIES)]
    code_at = at + len(_MAGIC) + TABLE_SIZE
    pieces = {at: _MAGIC + b"".join(rows) + stubs.code}
    for name, entry in stubs.entries.items():
        head = there[name]
        pieces[head] = jump(_MACHINE, head, code_at + entry, own[head : head + 4])
    return Patch(pieces)


def _room(own: bytes, size: int) -> int:
    """The start of the zeros that the kernel leaves after the image in its last page."""
    at = -(-len(own.rstrip(b"\0")) // 16) * 16 + 16
    if at + size > len(own):
        raise Refused(f"the vDSO of this kernel leaves {len(own) - at} bytes; {size} are needed")
    return at


def pristine() -> bytes:
    own = image("self").content
    assert _MAGIC not in own, "this process is skewed itself"
    return own


def read(content: bytes) -> Table | None:
    """The entries that an image was skewed with; None where it was not."""
    at = content.find(_MAGIC)
    if at < 0:
        return None
    rows = content[at + len(_MAGIC) :][:TABLE_SIZE]
    entries = (Entry(*row) for row in ENTRY.iter_unpack(rows))
    return {id: entry for id, entry in enumerate(entries) if entry != Entry()}


def skew(pid: int, entries: Table) -> None:
    """Skew a process. Refused where its vDSO is neither the kernel's own nor of our making."""
    own = pristine()
    new = patch(own, entries)
    found = image(pid)
    before = read(found.content)
    known = own if before is None else patch(own, before).on(own)
    if found.content != known:
        raise Refused(f"the vDSO of process {pid} was changed by somebody else")
    with stopped(pid, new.ranges(found.start)):
        write(pid, found.start, new)
    _check(pid, new.on(own))


def undo(pid: int) -> bool:
    """Put the kernel's own bytes back; whether there was something to undo."""
    found = image(pid)
    entries = read(found.content)
    if entries is None:
        return False
    own = pristine()
    old = patch(own, entries)
    back = Patch({at: own[at : at + len(piece)] for at, piece in old.pieces.items()})
    with stopped(pid, back.ranges(found.start)):
        write(pid, found.start, back)
    _check(pid, own)
    return True


def write(pid: int, start: int, new: Patch) -> None:
    with open(f"/proc/{pid}/mem", "r+b", buffering=0) as memory:
        for at, piece in new.pieces.items():
            os.pwrite(memory.fileno(), piece, start + at)


def _check(pid: int, wanted: bytes) -> None:
    if image(pid).content != wanted:
        raise Refused(f"the vDSO of process {pid} does not hold what was written into it")


def skewed() -> Iterator[tuple[int, Table]]:
    """Every process here that is skewed, with its entries."""
    for name in os.listdir("/proc"):
        try:
            entries = read(image(int(name)).content) if name.isdigit() else None
        except (Refused, OSError):
            continue  # a kernel thread, one that has just ended, or not ours to see
        if entries is not None:
            yield int(name), entries


# The file, for what is started later.


def keep(entries: Table, file: str = FILE) -> None:
    os.makedirs(os.path.dirname(file), exist_ok=True)
    rows = {id: [e.base_ns, e.offset_ns, e.rate, e.period_ns] for id, e in entries.items()}
    with open(file + ".new", "w") as new:
        json.dump(rows, new)
    os.replace(file + ".new", file)


def kept(file: str = FILE) -> Table | None:
    try:
        with open(file) as rows:
            return {int(id): Entry(*row) for id, row in json.load(rows).items()}
    except FileNotFoundError:
        return None


# The command.


def command(arguments: list[str]) -> dict[str, object]:
    """Carry out one call; its answer. Refused or OSError where it can not."""
    given = _parser().parse_args(arguments)
    if given.verb == "set":
        entries = table(given.clocks.split(","), given.offset_ns, given.rate, given.period_ns)
        skew(given.pid, entries)
        keep(entries)
        return {"pid": given.pid}
    if given.verb == "show":
        return {"skewed": [pid for pid, _ in skewed() if given.pid in (None, pid)]}
    if os.path.exists(FILE):
        os.remove(FILE)
    pids = [pid for pid, _ in skewed()] if given.pid is None else [given.pid]
    return {"undone": [pid for pid in pids if undo(pid)]}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("vdso")
    verbs = parser.add_subparsers(dest="verb", required=True)
    set_ = verbs.add_parser("set")
    set_.add_argument("pid", type=int)
    set_.add_argument("--clocks", required=True)
    set_.add_argument("--offset-ns", type=int, default=0)
    set_.add_argument("--rate", type=float, default=1.0)
    set_.add_argument("--period-ns", type=int, default=0)
    for verb in ("undo", "show"):
        verbs.add_parser(verb).add_argument("pid", type=int, nargs="?")
    return parser


def main() -> None:
    try:
        print(json.dumps(command(sys.argv[1:])))
    except (Refused, OSError) as error:
        sys.exit(f"vdso: {error}")


if __name__ == "__main__":
    main()
