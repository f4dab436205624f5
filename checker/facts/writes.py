"""The writes that the resource accepted, as far as the history proves it, and their order.

A write counts as accepted when it was acknowledged, or when its value was read: values are unique
in a run, so a read proves the only write of its value, even a refused one. The resource numbers
accepted writes one by one: the acknowledgement has the number (`stored`), else a read of the value
has. If one of two writes has no number, only certain time orders them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from operator import attrgetter, itemgetter
from typing import Any, Protocol

from msgspec import Struct
from msgspec.structs import replace

from fencepost.checker.facts.clocks import Clocks
from fencepost.checker.facts.holds import Hold
from fencepost.checker.facts.time_order import Axes, Axis
from fencepost.checker.history.accesses import Access, Key, accesses, key, number
from fencepost.checker.history.history import Call, History, Op


class Write(Struct, frozen=True, gc=False):
    """One accepted write. `built_on` and `stored` are versions.

    sent: its invocation. applied: by when it was certainly accepted: its acknowledgement, or the
    completion of the first read that showed it.
    """

    sent: Op
    applied: Op
    value: Any
    hold: str | None
    token: int | None
    built_on: int | None
    stored: int | None
    acknowledged: bool

    @property
    def process(self) -> int | str:
        return self.sent.process

    @property
    def node(self) -> str | None:
        return self.sent.node

    @property
    def begin(self) -> int:
        return self.sent.index

    @property
    def sent_ns(self) -> int:
        return self.sent.time

    @property
    def done(self) -> int:
        return self.applied.index

    @property
    def done_ns(self) -> int:
        return self.applied.time

    @property
    def who(self) -> str:
        return f"{self.node or 'a client'} (process {self.process})"


class Register(Struct, frozen=True):
    """One resource: the writes that it accepted and the reads that it answered.

    phantoms: for each value that was read and that no write can have made by then, the first read
    that shows it and the refused or later write of it, if there is one.
    """

    name: Any
    writes: list[Write]
    reads: list[Access]
    phantoms: list[tuple[Call, Call | None]]


def registers(history: History, clocks: Clocks | None = None) -> list[Register]:
    """Return every resource that was read or written, its accepted writes in order of
    invocation."""
    known = clocks or Clocks()

    def found() -> list[Register]:
        return [_register(name, mine, known) for name, mine in accesses(history)]

    return history.once(("registers", known.key), found)


def _register(name: Any, found: Sequence[Access], clocks: Clocks) -> Register:
    reads = [access for access in found if access.is_read and access.type == "ok"]
    shown: dict[Key, list[Access]] = {}
    for read in reads:
        shown.setdefault(read.key, []).append(read)
    written: dict[Key, list[Access]] = {}
    for access in found:
        if not access.is_read:
            written.setdefault(access.asked, []).append(access)
    writes: list[Write] = []
    phantoms: list[tuple[Call, Call | None]] = []
    for value in {**written, **shown}:
        rivals = written.get(value, [])
        possible = [access for access in rivals if access.type != "fail"]
        showing = shown.get(value, [])
        writes += _accepted(possible or rivals, showing, clocks)
        if value == _NONE:
            continue
        for read in showing:
            if all(_over(read, access, clocks) for access in possible):
                phantoms.append((read.call, rivals[0].call if rivals else None))
                break
    writes.sort(key=_SENT)
    return Register(name, writes, reads, phantoms)


_NONE = key(None)
_SENT = attrgetter("sent.index")


def _over(read: Access, write: Access, clocks: Clocks) -> bool:
    """Return whether a read ended before a write was sent."""
    end = read.call.end
    return end is not None and clocks.before(end, write.call.begin)


def _accepted(rivals: list[Access], shown: list[Access], clocks: Clocks) -> Iterator[Write]:
    """Return the accepted ones of the writes of one value; a read proves the only one."""
    for write in rivals:
        alone = shown if len(rivals) == 1 else []
        reads = [read for read in alone if not _over(read, write, clocks)]
        end = write.call.end
        if write.type == "ok" and end is not None:
            yield _write(write, end, reads)
        elif reads:
            ends = [read.call.end for read in reads if read.call.end is not None]
            yield _write(write, min(ends, key=attrgetter("index")), reads)


def _write(access: Access, applied: Op, reads: list[Access]) -> Write:
    sent = access.call.begin
    value = sent.value
    hold = value.get("hold")
    acknowledged = access.type == "ok"
    stored = access.version if acknowledged else None
    if stored is None:
        versions = (read.version for read in reads)
        stored = next((version for version in versions if version is not None), None)
    return Write(
        sent=sent,
        applied=applied,
        value=value.get("value"),
        hold=None if hold is None else str(hold),
        token=number(value.get("token")),
        built_on=number(value.get("version")),
        stored=stored,
        acknowledged=acknowledged,
    )


def owners(found: Iterable[Hold]) -> dict[str, Hold]:
    """Return holds by their names, which writes refer to (`Write.hold`).

    Names are unique in a run; a name of two holds is ambiguous and left out.
    """
    named: dict[str, Hold] = {}
    several = {hold.name for hold in found if named.setdefault(hold.name, hold) is not hold}
    for name in several:
        del named[name]
    return named


class Seen(Protocol):
    """Accepted writes, indexed by what one of them proves against a later one."""

    def add(self, write: Write) -> None: ...

    def against(self, write: Write) -> Write | None: ...


def after_others(
    writes: Sequence[Write], axes: Axes, seen: Callable[[], Seen]
) -> list[tuple[Write, Write]]:
    """Yield each write with one that `Seen` finds against it and that was certainly accepted before
    it.

    The resource's numbers decide if both have one; else the one must have been applied before the
    other was sent. Numbers that fall along certain time come from a failed store, and prove
    nothing. O(n log n): nothing is compared pair by pair.
    """
    if _fell(writes, axes):
        writes = [replace(write, stored=None) for write in writes]
    found = _by_number(writes, seen()) | _by_time(writes, axes, seen)
    return [(write, found[write.begin]) for write in writes if write.begin in found]


def _fell(writes: Sequence[Write], axes: Axes) -> bool:
    """Return whether a write has no higher number than another that was certainly applied before
    it."""
    numbered = [(write.stored, write) for write in writes if write.stored is not None]
    numbered.sort(key=itemgetter(0))
    if axes.one and len({number for number, _ in numbered}) == len(numbered):
        return _fell_on_one(write for _, write in numbered)
    last: dict[Axis, int] = {}  # the last sending among those with no higher number
    for _, same in groupby(numbered, key=itemgetter(0)):
        together = [write for _, write in same]
        for write in together:
            for axis, at in axes.begins(write.sent):
                last[axis] = max(at, last.get(axis, at))
        for write in together:
            if any(at < last.get(axis, at) for axis, at in axes.ends(write.applied)):
                return True
    return False


def _fell_on_one(writes: Iterable[Write]) -> bool:
    """Do the same on one axis, for writes in order of their numbers, which all differ."""
    last = -1
    for write in writes:
        if write.applied.index < last:
            return True
        last = max(last, write.sent.index)
    return False


def _by_number(writes: Sequence[Write], seen: Seen) -> dict[int, Write]:
    found: dict[int, Write] = {}
    waiting: list[Write] = []
    numbered = [(write.stored, write) for write in writes if write.stored is not None]
    last: int | None = None
    for version, write in sorted(numbered, key=itemgetter(0)):
        if version != last:  # writes of one version do not follow one another
            for other in waiting:
                seen.add(other)
            last, waiting = version, []
        waiting.append(write)
        earlier = seen.against(write)
        if earlier is not None:
            found[write.begin] = earlier
    return found


def _by_time(writes: Sequence[Write], axes: Axes, seen: Callable[[], Seen]) -> dict[int, Write]:
    """Do the same for the pairs with at most one number, on each axis."""
    if all(write.stored is not None for write in writes):
        return {}
    events: dict[Axis, list[tuple[int, bool, Write]]] = {}
    for write in writes:
        for axis, at in axes.begins(write.sent):
            events.setdefault(axis, []).append((at, False, write))
        for axis, at in axes.ends(write.applied):
            events.setdefault(axis, []).append((at, True, write))
    found: dict[int, Write] = {}
    for row in events.values():
        every, unnumbered = seen(), seen()
        for _, applied, write in sorted(row, key=itemgetter(0, 1)):
            if applied:
                every.add(write)
                if write.stored is None:
                    unnumbered.add(write)
                continue
            other = (every if write.stored is None else unnumbered).against(write)
            if other is not None:
                found[write.begin] = other
    return found
