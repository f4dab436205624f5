"""Lost updates and missing writes, by the versions that the resource tells.

A version is known from an acknowledgement or from a read. Where a write's own is not known, it is
at least one more than the version that its writer had read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fencepost.checker.history import Call
from fencepost.checker.holds import seconds
from fencepost.checker.rulers import Find, Ruler, Rulers, highest_before, lowest_after
from fencepost.checker.writes import Register, Write, key, number

Why = tuple[Write, str]


def lost(register: Register, rulers: Rulers) -> Iterator[Why]:
    """Writes that were applied to another version than the one that their writer had read."""
    rivals = _rivals(register.writes)
    shown = _Shown(register.reads, rulers)
    seen = [
        (read.end, version, f"process {read.begin.process} had read it")
        for read, version in _versions(register.reads)
        if read.end is not None
    ]
    seen += [
        (write.applied, write.stored, f"it was given to the write {write.value!r}")
        for write in register.writes
        if write.stored is not None
    ]
    reached = highest_before(rulers, seen)
    for write in register.writes:
        if write.built_on is not None:
            why = _why_lost(write, rivals.get(write.built_on, write), shown, reached)
            if why:
                yield write, why


def _rivals(writes: Sequence[Write]) -> dict[int, Write]:
    """For each version the write that may have followed it; all others that built on it did not.

    The one that is known to have, else the first sent of those that are not known not to have.
    """
    found: dict[int, Write] = {}
    for write in writes:
        if write.built_on is None or write.stored not in (None, write.built_on + 1):
            continue
        if found.setdefault(write.built_on, write).stored is None and write.stored is not None:
            found[write.built_on] = write
    return found


def _why_lost(write: Write, rival: Write, shown: _Shown, reached: Find[str]) -> str:
    assert write.built_on is not None
    expected = write.built_on + 1
    if write.stored is not None:
        if write.stored == expected:
            return ""
        return f"the resource stored it as version {write.stored}, on top of {write.stored - 1}"
    if rival is not write:
        return f"the write {rival.value!r} of process {rival.process} built on it as well"
    read = shown.instead(expected, write)
    if read is not None:
        return f"version {expected}, which should be this write, {_was_read(read)}"
    before = reached(write.sent)
    if before is not None and before[0] > write.built_on:
        return f"version {before[0]} was there before it was sent: {before[1]}"
    return ""


def missing(register: Register, rulers: Rulers) -> Iterator[Why]:
    """Acknowledged writes of which something certainly later shows that they are gone."""
    shown = _Shown(register.reads, rulers)
    reads = [(read.begin, version, read) for read, version in _versions(register.reads)]
    lowest_read = lowest_after(rulers, reads)
    writes = [(w.sent, w.stored, w) for w in register.writes if w.stored is not None]
    lowest_write = lowest_after(rulers, writes)
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
    """For each version that acknowledged writes were given, the one that may have it.

    A read shows which; else it is the last that was sent.
    """
    shown = {(version, key(read.get("value"))) for read, version in _versions(register.reads)}
    found: dict[int, tuple[bool, int, Write]] = {}
    for write in register.writes:
        if write.acknowledged and write.stored is not None:
            claim = ((write.stored, key(write.value)) in shown, write.begin, write)
            found[write.stored] = max(found.get(write.stored, claim), claim, key=lambda c: c[:2])
    return {version: write for version, (_, _, write) in found.items()}


def _versions(reads: Sequence[Call]) -> Iterator[tuple[Call, int]]:
    for read in reads:
        version = number(read.get("version"))
        if version is not None:
            yield read, version


class _Shown:
    """What reads showed as each version: on each ruler the last two reads of different values.

    Two are enough: one of them has another value than any given write's.
    """

    def __init__(self, reads: Sequence[Call], rulers: Rulers) -> None:
        self._rulers = rulers
        self._last: dict[int, dict[Ruler, list[tuple[int, str, Call]]]] = {}
        for read, version in _versions(reads):
            rows = self._last.setdefault(version, {})
            value = key(read.get("value"))
            for ruler, at in rulers.begins(read.begin):
                if ruler not in rows:
                    rows[ruler] = [(at, value, read)]
                    continue
                row = sorted([*rows[ruler], (at, value, read)], key=lambda r: r[0])
                last = row.pop()
                others = [earlier for earlier in row if earlier[1] != last[1]]
                rows[ruler] = [last, *others[-1:]]

    def instead(self, version: int, write: Write) -> Call | None:
        """A read that showed another value than this write's as this version."""
        for row in self._last.get(version, {}).values():
            for _, value, read in row:
                if value != key(write.value):
                    return read
        return None

    def later(self, version: int, write: Write) -> Call | None:
        """One that certainly began after this write was acknowledged."""
        rows = self._last.get(version, {})
        for ruler, at in self._rulers.ends(write.applied):
            for begun, value, read in rows.get(ruler, ()):
                if begun > at and value != key(write.value):
                    return read
        return None


def _read_instead(version: int, read: Call) -> str:
    return (
        f"process {read.begin.process} read version {version}, {read.get('value')!r}, at "
        f"{seconds(read.begin.time)}"
    )


def _was_read(read: Call) -> str:
    return (
        f"was read as {read.get('value')!r} by process {read.begin.process} at "
        f"{seconds(read.begin.time)}"
    )


def _to(write: Write) -> str:
    return f"to the write {write.value!r} of process {write.process}"
