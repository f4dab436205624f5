"""The patch of a process' vDSO that skews its clocks, and how to read it back.

The code of stubs.py goes into the zeros that the kernel leaves after the image in its last page,
after a signature, the address at which `timedwait` continues, and a table with an entry for each
clock. The first instruction of each function is replaced by a jump to it; the rest stays, so that a
thread in the middle of a function continues undisturbed.
"""

from __future__ import annotations

import platform
import struct
import time
from dataclasses import dataclass

from fencepost.node.image import Refused, functions
from fencepost.node.stubs import ENTRIES, ENTRY, STUBS, TABLE_SIZE, Stubs, jump

CLOCKS = {
    "wall": (time.CLOCK_REALTIME, 5, 11),  # 5: REALTIME_COARSE, 11: TAI
    "monotonic": (time.CLOCK_MONOTONIC, 4, 6, 7),  # MONOTONIC_RAW, MONOTONIC_COARSE, BOOTTIME
}
MAGIC = b"fencepost skew 1"
_HEAD = struct.Struct("<16sQ8x")
_MACHINE = platform.machine()


@dataclass(frozen=True)
class Entry:
    """The skew of one clock; see stubs.py."""

    base_ns: int = 0
    offset_ns: int = 0
    rate: int = 0
    period_ns: int = 0

    def packed(self) -> bytes:
        return ENTRY.pack(self.base_ns, self.offset_ns, self.rate, self.period_ns)

    @property
    def stands(self) -> bool:
        """Return whether its offset is constant."""
        return not (self.rate or self.period_ns)

    def at(self, now_ns: int) -> int:
        """Return the offset at a time of the clock's own, in ns."""
        return self.offset_ns + ((now_ns - self.base_ns) * self.rate >> 32)


Table = dict[int, Entry]
"""Entries by clock id; an id without one is not skewed."""


def table(clock: str, offset_ns: int, rate: float, period_ns: int) -> Table:
    """Return the entries for this clock, from now on.

    Raises:
        Refused: the clock is unknown, would run backwards, or would show a negative time.
    """
    if clock not in CLOCKS:
        raise Refused(f"unknown clock {clock!r}; choose from: {', '.join(CLOCKS)}")
    if not 0 <= rate <= 1000:
        raise Refused(f"rate {rate:g} is out of range (0, standing still, to 1000)")
    entries = {}
    for id in CLOCKS[clock]:
        now = time.clock_gettime_ns(id)
        if not 0 <= now + offset_ns < 1 << 62:
            raise Refused(
                f"offset {offset_ns / 1e9:+g} s is too low: the {clock} clock is at "
                f"{now / 1e9:.0f} s, and cannot be set below 0"
            )
        entries[id] = Entry(now, offset_ns, round((rate - 1) * 2**32), period_ns)
    return entries


def offsets(entries: Table) -> dict[str, int]:
    """Return the current offset of each clock in ns; of a strobe, its amplitude."""
    first = {clock: ids[0] for clock, ids in CLOCKS.items()}
    return {clock: entries[id].at(_now(id)) for clock, id in first.items() if id in entries}


def resting(entries: Table) -> Table:
    """Return the skew that is left at the end: monotonic clocks that are ahead stay ahead."""
    left = {}
    for id in CLOCKS["monotonic"]:
        entry = entries.get(id, Entry())
        # Until this takes effect a fast clock runs on; it must not be set back.
        ahead_ns = max(entry.at(_now(id)), entry.at(_now(id) + _SOON_NS))
        if ahead_ns > 0:
            left[id] = entry if entry.stands else Entry(_now(id), ahead_ns)
    return left


_SOON_NS = 20_000_000


def _now(id: int) -> int:
    return time.clock_gettime_ns(id)


@dataclass(frozen=True)
class Patch:
    """The patch in a skewed process' vDSO.

    `wait` is the C library's pthread_cond_timedwait, 0 if the process has none (waits.py).
    """

    entries: Table
    wait: int = 0

    def pieces(self, own: bytes) -> dict[int, bytes]:
        """Return the bytes to write over the kernel's own vDSO, by offset.

        Raises:
            Refused: this machine's vDSO is unknown, or leaves no room.
        """
        replaced, there = stubs(), functions(own)
        if not set(replaced.entries) <= set(there):
            raise Refused(f"the vDSO of this kernel ({_MACHINE}) lacks the functions to replace")
        rows = b"".join(self.entries.get(id, Entry()).packed() for id in range(ENTRIES))
        at = room(own)
        pieces = {at: _HEAD.pack(MAGIC, self.wait) + rows + replaced.code}
        code = code_at(own)
        for name, entry in replaced.entries.items():
            head = there[name]
            pieces[head] = jump(_MACHINE, head, code + entry, own[head : head + 4])
        return pieces

    def on(self, own: bytes) -> bytes:
        """Return the vDSO with the patch in it."""
        for at, piece in self.pieces(own).items():
            own = own[:at] + piece + own[at + len(piece) :]
        return own


def stubs() -> Stubs:
    if _MACHINE not in STUBS:
        raise Refused(f"no clock code exists for this machine ({_MACHINE})")
    return STUBS[_MACHINE]


def room(own: bytes) -> int:
    """Return the start of the zeros that the kernel leaves after the image in its last page."""
    at = -(-len(own.rstrip(b"\0")) // 16) * 16 + 16
    size = _HEAD.size + TABLE_SIZE + len(stubs().code)
    if at + size > len(own):
        raise Refused(f"the vDSO of this kernel leaves {len(own) - at} bytes; {size} are needed")
    return at


def code_at(own: bytes) -> int:
    return room(own) + _HEAD.size + TABLE_SIZE


def read(content: bytes) -> Patch | None:
    """Read the patch of an image, or None."""
    at = content.find(MAGIC)
    if at < 0:
        return None
    rows_at = at + _HEAD.size
    rows = ENTRY.iter_unpack(content[rows_at : rows_at + TABLE_SIZE])
    entries = {id: Entry(*row) for id, row in enumerate(rows) if any(row)}
    return Patch(entries, _HEAD.unpack_from(content, at)[1])
