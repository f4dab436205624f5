"""The writes that the resource accepted, as far as the history proves it, and their order.

A write counts as accepted when it was acknowledged, or when somebody read its value: values are
unique in a run, so that a read proves the only write of its value, even one that was refused. The
resource numbers what it accepts, one by one: the acknowledgement says the number (`stored`), else
a read of the value does. Where one of two writes has no number, only certain time orders them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from fencepost.checker.clocks import Clocks
from fencepost.checker.history import Call, History, Op
from fencepost.checker.holds import Hold
from fencepost.checker.rulers import Ruler, Rulers, highest_before


@dataclass(frozen=True, slots=True)
class Write:
    """One accepted write. `built_on` and `stored` are versions.

    sent: its invocation. applied: by when it was certainly accepted, its acknowledgement or the
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


@dataclass(frozen=True)
class Register:
    """One resource: the writes that it accepted and the reads that it answered.

    phantoms: for each value that was read and that no write can have made by then, the first read
    that shows it and the refused or later write of it, if there is one.
    """

    name: Any
    writes: list[Write]
    reads: list[Call]
    phantoms: list[tuple[Call, Call | None]]


def number(value: Any) -> int | None:
    """A version or token as a number; None where none was given."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def key(value: Any) -> str:
    """What two equal values share, be they numbers, texts or lists."""
    return repr(value)


def by_resource(history: History) -> dict[Any, list[Call]]:
    """The reads and writes of each resource, in order of invocation."""
    found: dict[Any, list[Call]] = {}
    for call in history.calls():
        if call.begin.f in ("read", "write"):
            found.setdefault(call.begin.value.get("resource"), []).append(call)
    return found


def registers(history: History, clocks: Clocks | None = None) -> list[Register]:
    """Every resource that was read or written to, its accepted writes in order of invocation."""
    known = clocks or Clocks()

    def found() -> list[Register]:
        return [_register(name, calls, known) for name, calls in by_resource(history).items()]

    return history.once(("registers", known.key), found)


def _register(name: Any, calls: Sequence[Call], clocks: Clocks) -> Register:
    reads = [call for call in calls if call.begin.f == "read" and call.type == "ok"]
    shown: dict[str, list[Call]] = {}
    for read in reads:
        shown.setdefault(key(read.get("value")), []).append(read)
    written: dict[str, list[Call]] = {}
    for call in calls:
        if call.begin.f == "write":
            written.setdefault(key(call.begin.value.get("value")), []).append(call)
    writes: list[Write] = []
    phantoms: list[tuple[Call, Call | None]] = []
    for value in {**written, **shown}:
        rivals = written.get(value, [])
        possible = [call for call in rivals if call.type != "fail"]
        showing = shown.get(value, [])
        writes += _accepted(possible or rivals, showing, clocks)
        early = (read for read in showing if all(_over(read, call, clocks) for call in possible))
        phantom = next(early, None) if value != key(None) else None
        if phantom is not None:
            phantoms.append((phantom, rivals[0] if rivals else None))
    return Register(name, sorted(writes, key=lambda write: write.begin), reads, phantoms)


def _over(read: Call, write: Call, clocks: Clocks) -> bool:
    """Whether a read was over before a write was sent."""
    return read.end is not None and clocks.before(read.end, write.begin)


def _accepted(rivals: list[Call], shown: list[Call], clocks: Clocks) -> Iterator[Write]:
    """Of the writes of one value those that were accepted; a read proves the only one."""
    for call in rivals:
        alone = shown if len(rivals) == 1 else []
        reads = [read for read in alone if not _over(read, call, clocks)]
        ends = [read.end for read in reads if read.end is not None]
        if call.type == "ok" and call.end is not None:
            yield _write(call, call.end, reads)
        elif ends:
            yield _write(call, min(ends, key=lambda op: op.index), reads)


def _write(call: Call, applied: Op, reads: list[Call]) -> Write:
    value = call.begin.value
    told = [number(call.get("stored"))] if call.type == "ok" else []
    told += [number(read.get("version")) for read in reads]
    hold = value.get("hold")
    return Write(
        sent=call.begin,
        applied=applied,
        value=value.get("value"),
        hold=None if hold is None else str(hold),
        token=number(value.get("token")),
        built_on=number(value.get("version")),
        stored=next((version for version in told if version is not None), None),
        acknowledged=call.type == "ok",
    )


def owners(found: Iterable[Hold]) -> dict[str, Hold]:
    """Holds by their names, by which writes speak of them (`Write.hold`).

    Names are unique in a run; one that two holds share does not say which, and is left out.
    """
    named: dict[str, list[Hold]] = {}
    for hold in found:
        named.setdefault(hold.name, []).append(hold)
    return {name: same[0] for name, same in named.items() if len(same) == 1}


class Seen(Protocol):
    """Writes that were accepted, and what one of them proves against one that came after."""

    def add(self, write: Write) -> None: ...

    def against(self, write: Write) -> Write | None: ...


def after_others(
    writes: Sequence[Write], rulers: Rulers, seen: Callable[[], Seen]
) -> list[tuple[Write, Write]]:
    """Each write with one that `Seen` holds against it and that was certainly accepted before it.

    The resource's numbers decide where both have one; else the one must have been applied before
    the other was sent. Numbers that fall along certain time are those of a store that failed, and
    say nothing. O(n log n): nothing is compared pair by pair.
    """
    if _fell(writes, rulers):
        writes = [replace(write, stored=None) for write in writes]
    found = _by_number(writes, seen()) | _by_time(writes, rulers, seen)
    return [(write, found[write.begin]) for write in writes if write.begin in found]


def _fell(writes: Sequence[Write], rulers: Rulers) -> bool:
    """Whether a write has no higher number than another that was certainly applied before it."""
    numbered = [
        (write.applied, write.stored, write) for write in writes if write.stored is not None
    ]
    highest = highest_before(rulers, numbered)
    for _, stored, write in numbered:
        before = highest(write.sent)
        if before is not None and before[0] >= stored:
            return True
    return False


def _by_number(writes: Sequence[Write], seen: Seen) -> dict[int, Write]:
    found: dict[int, Write] = {}
    waiting: list[Write] = []
    numbered = [(write.stored, write) for write in writes if write.stored is not None]
    last: int | None = None
    for version, write in sorted(numbered, key=lambda row: row[0]):
        if version != last:  # writes of one version are not after one another
            for other in waiting:
                seen.add(other)
            last, waiting = version, []
        waiting.append(write)
        earlier = seen.against(write)
        if earlier is not None:
            found[write.begin] = earlier
    return found


def _by_time(writes: Sequence[Write], rulers: Rulers, seen: Callable[[], Seen]) -> dict[int, Write]:
    """The same for the pairs of which one has no number, on each ruler."""
    events: dict[Ruler, list[tuple[int, bool, Write]]] = {}
    if all(write.stored is not None for write in writes):
        return {}
    for write in writes:
        for ruler, at in rulers.begins(write.sent):
            events.setdefault(ruler, []).append((at, False, write))
        for ruler, at in rulers.ends(write.applied):
            events.setdefault(ruler, []).append((at, True, write))
    found: dict[int, Write] = {}
    for row in events.values():
        every, unnumbered = seen(), seen()
        for _, applied, write in sorted(row, key=lambda event: event[:2]):
            if applied:
                every.add(write)
                if write.stored is None:
                    unnumbered.add(write)
                continue
            other = (every if write.stored is None else unnumbered).against(write)
            if other is not None:
                found[write.begin] = other
    return found
