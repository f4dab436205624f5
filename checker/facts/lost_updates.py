"""Lost updates and missing writes, from the versions that the resource reports.

A version is known from an acknowledgement or from a read. If a write's own version is unknown, it
is at least one more than the version that its writer had read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter

from fencepost.checker.facts.holds import seconds
from fencepost.checker.facts.time_order import Axes, Axis, Find, highest_before, lowest_after
from fencepost.checker.facts.writes import Register, Write
from fencepost.checker.history.accesses import Access, Key, key
from fencepost.checker.history.history import Op

Why = tuple[Write, str]


@dataclass(frozen=True)
class Lost:
    """A lost update: `write` followed another version than its writer had read, as `why` proves.
    `by`: another write that followed that version, if it is known."""

    write: Write
    why: str
    by: Write | None


def lost(register: Register, axes: Axes) -> Iterator[Lost]:
    """Return writes that were applied to a version other than the one that their writer had
    read."""
    # Nearly every write is known to follow the version read.
    doubtful = [
        write
        for write in register.writes
        if write.built_on is not None and write.stored != write.built_on + 1
    ]
    if not doubtful:
        return
    rivals = _rivals(register.writes)
    shown = _Shown(register.reads, axes)
    seen: list[tuple[Op, int, Access | Write]] = [
        (read.call.end, read.version, read)
        for read in register.reads
        if read.version is not None and read.call.end is not None
    ]
    seen += [
        (write.applied, write.stored, write)
        for write in register.writes
        if write.stored is not None
    ]
    reached = highest_before(axes, seen)
    by_version = {write.stored: write for write in register.writes if write.stored is not None}
    for write in doubtful:
        assert write.built_on is not None
        rival = rivals.get(write.built_on, write)
        why = _why_lost(write, rival, shown, reached)
        if why:
            back = write.stored is not None and write.stored <= write.built_on
            other = by_version.get(write.built_on + 1, rival)
            yield Lost(write, why, None if back or other is write else other)


def _rivals(writes: Sequence[Write]) -> dict[int, Write]:
    """Return for each version the write that may have followed it; all others that built on it did
    not.

    It is the one known to have followed, else the first sent of those not known to be elsewhere.
    """
    found: dict[int, Write] = {}
    for write in writes:
        if write.built_on is None or write.stored not in (None, write.built_on + 1):
            continue
        if found.setdefault(write.built_on, write).stored is None and write.stored is not None:
            found[write.built_on] = write
    return found


def _why_lost(write: Write, rival: Write, shown: _Shown, reached: Find[Access | Write]) -> str:
    assert write.built_on is not None
    expected = write.built_on + 1
    if write.stored is not None:
        return f"the resource stored it as version {write.stored}, on top of {write.stored - 1}"
    if rival is not write:
        return f"the write {rival.value!r} of process {rival.process} built on it as well"
    read = shown.instead(expected, write)
    if read is not None:
        return f"version {expected}, which should be this write, {_was_read(read)}"
    before = reached(write.sent)
    if before is not None and before[0] > write.built_on:
        return f"version {before[0]} existed before it was sent: {_had(before[1])}"
    return ""


def _had(what: Access | Write) -> str:
    if isinstance(what, Write):
        return f"it was given to the write {what.value!r}"
    return f"process {what.call.begin.process} had read it"


def missing(register: Register, axes: Axes) -> Iterator[Why]:
    """Return acknowledged writes that a certainly later op shows to be missing."""
    shown = _Shown(register.reads, axes)
    reads = [
        (read.call.begin, read.version, read) for read in register.reads if read.version is not None
    ]
    lowest_read = lowest_after(axes, reads)
    writes = [(w.sent, w.stored, w) for w in register.writes if w.stored is not None]
    lowest_write = lowest_after(axes, writes)
    kept = _kept(register)
    for write in register.writes:
        reached = write.stored
        if reached is None and write.built_on is not None:
            reached = write.built_on + 1
        if not write.acknowledged or reached is None:
            continue
        again, read = lowest_write(write.applied), lowest_read(write.applied)
        other = holder = None
        if write.stored is not None:
            other, holder = shown.later(write.stored, write), kept[write.stored]
        if again is not None and again[0] <= reached:
            yield write, f"version {again[0]} was given again, {_to(again[1])}"
        elif read is not None and read[0] < reached:
            yield write, _read_instead(*read)
        elif other is not None:
            yield write, f"version {write.stored}, its own, {_was_read(other)}"
        elif holder is not None and holder is not write:
            yield write, f"version {write.stored} was given twice, {_to(holder)}"


def _kept(register: Register) -> dict[int, Write]:
    """Return for each version that acknowledged writes were given the one that may have it.

    A read decides; else it is the last that was sent.
    """
    found: dict[int, Write] = {}
    twice: dict[int, list[Write]] = {}
    for write in register.writes:
        if write.acknowledged and write.stored is not None:
            first = found.setdefault(write.stored, write)
            if first is not write:
                twice.setdefault(write.stored, [first]).append(write)
    if twice:
        shown = {(read.version, read.key) for read in register.reads}
        for version, rivals in twice.items():
            found[version] = max(
                rivals, key=lambda write: ((write.stored, key(write.value)) in shown, write.begin)
            )
    return found


class _Shown:
    """The values that reads showed for each version: on each axis the last two reads of different
    values.

    Two suffice: one of them has another value than any given write's.
    """

    def __init__(self, reads: Sequence[Access], axes: Axes) -> None:
        self._axes = axes
        self._last: dict[int, dict[Axis, list[tuple[int, Key, Access]]]] = {}
        for read in reads:
            if read.version is None:
                continue
            rows = self._last.get(read.version)
            if rows is None:
                rows = self._last[read.version] = {}
            for axis, at in axes.begins(read.call.begin):
                row = rows.get(axis)
                if row is None:
                    rows[axis] = [(at, read.key, read)]
                    continue
                row = sorted([*row, (at, read.key, read)], key=itemgetter(0))
                last = row.pop()
                others = [earlier for earlier in row if earlier[1] != last[1]]
                rows[axis] = [last, *others[-1:]]

    def instead(self, version: int, write: Write) -> Access | None:
        """Return a read that showed a value other than this write's as this version."""
        mine = key(write.value)
        for row in self._last.get(version, {}).values():
            for _, value, read in row:
                if value != mine:
                    return read
        return None

    def later(self, version: int, write: Write) -> Access | None:
        """Return a read that certainly began after this write was acknowledged."""
        rows = self._last.get(version)
        if rows is None:
            return None
        mine = key(write.value)
        for axis, at in self._axes.ends(write.applied):
            for begun, value, read in rows.get(axis, ()):
                if begun > at and value != mine:
                    return read
        return None


def _read_instead(version: int, read: Access) -> str:
    return f"{_reader(read)} read version {version}, {_value(read)!r}, at {_begun(read)}"


def _was_read(read: Access) -> str:
    return f"was read as {_value(read)!r} by {_reader(read)} at {_begun(read)}"


def _value(read: Access) -> object:
    return read.call.get("value")


def _reader(read: Access) -> str:
    return f"process {read.call.begin.process}"


def _begun(read: Access) -> str:
    return seconds(read.call.begin.time)


def _to(write: Write) -> str:
    return f"to the write {write.value!r} of process {write.process}"
