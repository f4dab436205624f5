"""`store`: is the resource's own history linearizable?

The resource is a register whose accepted writes are numbered one by one from 1; before the first,
version 0 is None. Every answer reports its version, so there is only one order to try: by version,
each write before the reads of it. Only writes of unknown outcome have to be searched for: such a
write may have made any version that was certainly not shown before it was sent, once, and only with
the value that was read. That is a matching of versions and writes whose choices are nested, and
therefore exact in O(n log n). If no order fits, the store has failed, and the findings of
`resource` may be due to the store and not to the lock.

An answer without a version takes that of the other answers with its value, if they agree and one
write wrote that value. Else it is left out, its write counts as one of unknown outcome, and the
verdict is `unknown` unless a violation is found elsewhere.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import attrgetter, itemgetter
from typing import Any

from msgspec import Struct

from fencepost.checker.checker import Checker, of_history
from fencepost.checker.facts.clocks import Clocks
from fencepost.checker.facts.holds import FOREVER, seconds
from fencepost.checker.facts.time_order import Ruler, Rulers, highest_before, tied
from fencepost.checker.history.accesses import Access, Key, accesses, key
from fencepost.checker.history.history import Call, History, Op
from fencepost.checker.signs import VERSION_JUMPED, any_of
from fencepost.checker.verdict import Verdict, noted

NOTHING = key(None)
_PLACE = attrgetter("version", "is_read", "call.begin.index")
Row = dict[str, Any]


class _Point(Struct, frozen=True, gc=False):
    """One answered op with its position in the order."""

    version: int
    is_read: bool
    call: Call
    done: Op
    key: Key

    @property
    def value(self) -> Any:
        return self.call.get("value")

    def describe(self) -> str:
        verb = "read" if self.is_read else "wrote"
        return (
            f"process {self.call.begin.process} {verb} version {self.version}, from "
            f"{seconds(self.call.begin.time)} to {seconds(self.done.time)}"
        )


def store(history: History, test: Mapping[str, Any]) -> Verdict:
    """Check that the reads and accepted writes of each resource fit one order, that of the
    versions."""
    registers = [_Register(name, found) for name, found in accesses(history)]
    answers = sum(register.answers for register in registers)
    if not answers:
        words = "The resource never answered: nothing was tested."
        return Verdict("unknown", words, [], {"operations": 0})
    untested = [f"{r.name} (it never answered)" for r in registers if not r.answers]
    details = {"operations": answers, "untested": untested}
    rulers = Rulers(Clocks(test), tied(history))
    found = [register.wrong(rulers) for register in registers]
    evidence = [row for row in found if row]
    if evidence:
        return Verdict(False, noted(evidence[0]["what"], untested), evidence, details)
    unversioned = [access for register in registers for access in register.unversioned]
    if unversioned:
        return Verdict("unknown", noted(_no_version(unversioned[0].call), untested), [], details)
    untested += [
        f"{r.name} after a write (nothing was answered that began after an accepted write)"
        for r in registers
        if r.answers and not r.followed
    ]
    words = f"All {answers} answers of the resource fit one order."
    if answers == 1:
        words = "The resource gave one answer, which fits."
    return Verdict(True, noted(words, untested), [], details)


def _no_version(call: Call) -> str:
    return (
        f"The {call.begin.f} of process {call.begin.process} at {seconds(call.begin.time)} has no "
        "version, and no other answer gives it, so its position is unknown."
    )


class _Register:
    """One resource: its answers by position, and the writes of unknown outcome (`pending`)."""

    def __init__(self, name: Any, found: Sequence[Access]) -> None:
        self.name = name
        writes = [access for access in found if not access.is_read]
        self.refused = [access for access in writes if access.type == "fail"]
        self.pending = [access for access in writes if access.type == "info"]
        answered = [access for access in found if access.type == "ok"]
        self.answers = len(answered)
        # Whether an answer could show that an accepted write was lost.
        ends = (w.call.end.index for w in writes if w.type == "ok" and w.call.end)
        first = min(ends, default=FOREVER)
        self.followed = any(first < access.call.begin.index for access in answered)
        self.written = Counter(access.key for access in writes if access.type != "fail")
        # The resource itself wrote None, as version 0.
        self.written[NOTHING] += 1
        versions: dict[Key, set[int]] = {NOTHING: {0}}
        if any(access.version is None for access in answered):
            for access in answered:
                if access.version is not None:
                    versions.setdefault(access.key, set()).add(access.version)
        self.points: list[_Point] = []
        self.unversioned: list[Access] = []
        for access in answered:
            version, call = access.version, access.call
            assert call.end is not None
            if version is None:
                known = versions.get(access.key, set())
                if len(known) == 1 and self.written[access.key] == 1:
                    (version,) = known
            if version is not None:
                self.points.append(_Point(version, access.is_read, call, call.end, access.key))
                continue
            self.unversioned.append(access)
            if not access.is_read:
                self.pending.append(access)
        self.points.sort(key=_PLACE)

    def wrong(self, rulers: Rulers) -> Row | None:
        """Return the first violation, or None."""
        return (
            self._no_register()
            or self._nobody_wrote()
            or self._against_time(rulers)
            or _Gaps(self, rulers).wrong()
        )

    def _no_register(self) -> Row | None:
        """Describe a version with two values or two writes, or an impossible one."""
        values: dict[int, _Point] = {}
        writes: dict[int, _Point] = {}
        for point in self.points:
            if point.version < (0 if point.is_read else 1):
                return _row(f"There is no version {point.version}: {point.describe()}", point.call)
            if point.version == 0 and point.key != NOTHING:
                return _row(f"Version 0 is None and also {point.value!r}", point.call)
            first = values.setdefault(point.version, point)
            if first.key != point.key:
                what = f"Version {point.version} is {first.value!r} and also {point.value!r}"
                return _row(what, first.call, point.call)
            if not point.is_read:
                other = writes.setdefault(point.version, point)
                if other is not point:
                    what = f"Version {point.version} was given to two writes"
                    return _row(what, other.call, point.call)
        return None

    def _nobody_wrote(self) -> Row | None:
        """Describe a read of a value that no accepted write can have written."""
        answered: list[_Point | Access] = [*self.points, *self.unversioned]
        for one in answered:
            call, shown = one.call, one.key
            if shown in self.written:
                continue
            value = call.get("value")
            refused = next((w.call for w in self.refused if w.key == shown), None)
            words = f"{value!r}, which process {call.begin.process} read, was never written"
            if refused is not None:
                words = (
                    f"{value!r}, which process {call.begin.process} read, is of a write of process "
                    f"{refused.begin.process} that failed"
                )
            return _row(words, refused or call, call)
        return None

    def _against_time(self, rulers: Rulers) -> Row | None:
        """Describe an op that ended before another of a lower position began."""
        if rulers.one and self._in_order():
            return None
        latest: dict[Ruler, tuple[int, _Point]] = {}
        for point in self.points:
            for ruler, at in rulers.ends(point.done):
                begun, other = latest.get(ruler, (at, point))
                if at < begun:
                    what = f"The order is reversed: {other.describe()}, after {point.describe()}"
                    return _row(what, point.call, other.call)
            for ruler, at in rulers.begins(point.call.begin):
                if ruler not in latest or at > latest[ruler][0]:
                    latest[ruler] = (at, point)
        return None

    def _in_order(self) -> bool:
        """Return whether no op ended before one of a lower position began, on one ruler."""
        begun = -1
        for point in self.points:
            if point.done.index < begun:
                return False
            begun = max(begun, point.call.begin.index)
        return True


class _Gaps:
    """Versions that no acknowledged write made: each was made by one of unknown outcome.

    Such a write can have made any version above all that were seen by the time it was sent. So it
    can fill every gap above the first that it can fill. The gaps whose value was read go first,
    each to the write with the highest such bound. Any of the rest will do for the gaps of unknown
    value, from the lowest on.
    """

    def __init__(self, register: _Register, rulers: Rulers) -> None:
        self._points = register.points
        self._written = {point.version for point in register.points if not point.is_read}
        seen = highest_before(rulers, ((p.done, p.version, p) for p in register.points))
        lowest = []
        for access in register.pending:
            before = seen(access.call.begin)
            lowest.append((before[0] + 1 if before else 1, access))
        self._pending = sorted(lowest, key=itemgetter(0))

    def wrong(self) -> Row | None:
        """Return the first version that no write can have made, or None."""
        shown: dict[Key, list[_Point]] = {}
        known = {0}
        for point in self._points:
            if point.version not in self._written and point.version not in known:
                known.add(point.version)
                shown.setdefault(point.key, []).append(point)
        taken: set[int] = set()
        by_value: dict[Key, list[tuple[int, Access]]] = {}
        for lowest, access in self._pending:
            by_value.setdefault(access.key, []).append((lowest, access))
        for value, points in shown.items():
            for point, maker in _highest_first(points, by_value.get(value, [])):
                if maker is None:
                    what = f"No write of {point.value!r} can have made version {point.version}"
                    return _row(f"{what}, which exists: {point.describe()}", point.call)
                taken.add(maker.call.begin.index)
        spare = [lowest for lowest, access in self._pending if access.call.begin.index not in taken]
        return self._unseen(spare, known)

    def _unseen(self, spare: Iterable[int], known: set[int]) -> Row | None:
        """Do the same for versions whose value was not read; `spare` rises."""
        free = iter(spare)
        # Each gap takes a write, so this terminates soon even if versions are huge.
        for version in range(1, max((p.version for p in self._points), default=0)):
            if version in self._written or version in known:
                continue
            if next(free, FOREVER) > version:
                above = [p for p in self._points if p.version >= version]
                point = min(above, key=lambda p: p.done.index)
                what = f"No write can have made version {version}, which exists"
                return _row(f"{what}: {point.describe()}", point.call)
        return None


def _highest_first(
    points: Iterable[_Point], writes: Sequence[tuple[int, Access]]
) -> Iterator[tuple[_Point, Access | None]]:
    """Yield each version in turn with the latest of the writes that can have made it, if any can.

    The latest ones can make the fewest other versions. Both come in order of versions.
    """
    coming = list(reversed(writes))
    able: list[Access] = []
    for point in points:
        while coming and coming[-1][0] <= point.version:
            able.append(coming.pop()[1])
        yield point, able.pop() if able else None


def _row(what: str, *calls: Call) -> Row:
    ends = {call.end.index if call.end else call.begin.index for call in calls}
    return {"what": f"{what}.", "time_ns": calls[-1].begin.time, "ops": sorted(ends)}


CHECKER = Checker(
    name="store",
    question="The resource's own answers fit one order, so a violation is not the store's.",
    about=("resource",),
    check=of_history(store),
    column="store",
    suspect=any_of(VERSION_JUMPED),
    touches=lambda history: any(op.value.get("stored") is not None for op in history.clients()),
)
