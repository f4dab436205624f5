"""What is written into the vDSO of a process to skew its clocks, and how it is read back.

The code of stubs.py goes into the zeros that the kernel leaves after the image in its last page,
behind a name to know it by, the address that `timedwait` goes on at, and a table with an entry
for each clock. The functions' own first instruction is replaced by a jump to it; the rest of
them stays, so that a thread that is in the middle of one goes on undisturbed.
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
    """How one clock is skewed; see stubs.py."""

    base_ns: int = 0
    offset_ns: int = 0
    rate: int = 0
    period_ns: int = 0

    def packed(self) -> bytes:
        return ENTRY.pack(self.base_ns, self.offset_ns, self.rate, self.period_ns)

    @property
    def stands(self) -> bool:
        """Whether its offset stays as it is."""
        return not (self.rate or self.period_ns)

    def at(self, now_ns: int) -> int:
        """The offset at a time of the clock's own, in ns."""
        return self.offset_ns + ((now_ns - self.base_ns) * self.rate >> 32)


Table = dict[int, Entry]
"""Entries by clock id; an id without one goes right."""


def table(clock: str, offset_ns: int, rate: float, period_ns: int) -> Table:
    """The entries for this clock, from now on.

    Raises:
        Refused: no such clock, one that would run backwards, or show a time before zero.
    """
    if clock not in CLOCKS:
        raise Refused(f"there is no clock {clock!r}; there are: {', '.join(CLOCKS)}")
    if not 0 <= rate <= 1000:
        raise Refused(f"a rate of {rate:g}: from 0 (it stands still) to 1000")
    entries = {}
    for id in CLOCKS[clock]:
        now = time.clock_gettime_ns(id)
        if not 0 <= now + offset_ns < 1 << 62:
            raise Refused(
                f"an offset of {offset_ns / 1e9:+g} s: the {clock} clock is at "
                f"{now / 1e9:.0f} s, and cannot be set to less than 0"
            )
        entries[id] = Entry(now, offset_ns, round((rate - 1) * 2**32), period_ns)
    return entries


def offsets(entries: Table) -> dict[str, int]:
    """How far off each clock is now, in ns; of a strobe, how far at most."""
    first = {clock: ids[0] for clock, ids in CLOCKS.items()}
    return {clock: entries[id].at(_now(id)) for clock, id in first.items() if id in entries}


def resting(entries: Table) -> Table:
    """What is left of a skew when it ends: monotonic clocks that are ahead stay so."""
    left = {}
    for id in CLOCKS["monotonic"]:
        entry = entries.get(id, Entry())
        # Until this is in force a fast clock runs on; it must not find itself set back.
        ahead_ns = max(entry.at(_now(id)), entry.at(_now(id) + _SOON_NS))
        if ahead_ns > 0:
            left[id] = entry if entry.stands else Entry(_now(id), ahead_ns)
    return left


_SOON_NS = 20_000_000


def _now(id: int) -> int:
    return time.clock_gettime_ns(id)


@dataclass(frozen=True)
class Patch:
    """What a skewed process' vDSO has in it.

    `wait` is the C library's pthread_cond_timedwait, 0 where the process has none (waits.py).
    """

    entries: Table
    wait: int = 0

    def pieces(self, own: bytes) -> dict[int, bytes]:
        """What to write over the kernel's own vDSO, by offset.

        Raises:
            Refused: this machine's vDSO is not known, or leaves no room.
        """
        replaced, there = stubs(), functions(own)
        if not set(replaced.entries) <= set(there):
            raise Refused(f"the vDSO of this kernel ({_MACHINE}) has not the functions to replace")
        rows = b"".join(self.entries.get(id, Entry()).packed() for id in range(ENTRIES))
        at = room(own)
        pieces = {at: _HEAD.pack(MAGIC, self.wait) + rows + replaced.code}
        code = code_at(own)
        for name, entry in replaced.entries.items():
            head = there[name]
            pieces[head] = jump(_MACHINE, head, code + entry, own[head : head + 4])
        return pieces

    def on(self, own: bytes) -> bytes:
        """The vDSO with the patch in it."""
        for at, piece in self.pieces(own).items():
            own = own[:at] + piece + own[at + len(piece) :]
        return own


def stubs() -> Stubs:
    if _MACHINE not in STUBS:
        raise Refused(f"there is no code for this machine ({_MACHINE})")
    return STUBS[_MACHINE]


def room(own: bytes) -> int:
    """The start of the zeros that the kernel leaves after the image in its last page."""
    at = -(-len(own.rstrip(b"\0")) // 16) * 16 + 16
    size = _HEAD.size + TABLE_SIZE + len(stubs().code)
    if at + size > len(own):
        raise Refused(f"the vDSO of this kernel leaves {len(own) - at} bytes; {size} are needed")
    return at


def code_at(own: bytes) -> int:
    return room(own) + _HEAD.size + TABLE_SIZE


def read(content: bytes) -> Patch | None:
    """The patch that an image has in it; None where it has none."""
    at = content.find(MAGIC)
    if at < 0:
        return None
    rows_at = at + _HEAD.size
    rows = ENTRY.iter_unpack(content[rows_at : rows_at + TABLE_SIZE])
    entries = {id: Entry(*row) for id, row in enumerate(rows) if any(row)}
    return Patch(entries, _HEAD.unpack_from(content, at)[1])
