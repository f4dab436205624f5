"""`resource`: did the user's data survive?

The resource is a register with a version that rises by one with every write it accepts. A
client reads value and version, and later writes a new value and says which version it read.
Three kinds of damage are told apart:

- *lost update*: an accepted write did not follow the write that its writer had read;
- *missing*: an acknowledged write was not there when somebody looked later;
- *stale*: a write was accepted after the write of a later grant of the lock.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from itertools import accumulate
from typing import Any

from checker.faults import Fault, during, faults
from checker.history import Call, History
from checker.holds import Hold, holds, seconds
from checker.verdict import Verdict, count
from checker.writes import Register, Write, in_order, registers

KINDS = {
    "lost_update": "overwrote what its writer had not seen",
    "missing": "was acknowledged and not there later",
    "stale": "was accepted after a later holder's write",
}
_HEAD = {
    "lost_update": "built on version {built_on}, but",
    "missing": "was acknowledged and is not there:",
    "stale": "was accepted though stale:",
}

Damage = tuple[str, Write, str]


def resource(history: History, test: Mapping[str, Any]) -> Verdict:
    """Every acknowledged write is there, follows what its writer read, and is not stale."""
    found = list(registers(history))
    accepted = sum(len(register.writes) for register in found)
    refused = sum(1 for c in history.calls() if c.begin.f == "write" and c.type == "fail")
    details: dict[str, Any] = {"accepted": accepted, "refused": refused}
    if not accepted:
        return Verdict("unknown", "No write was accepted: nothing was tested.", [], details)
    owners = {hold.name: hold for hold in holds(history, test)}

    def stale(register: Register) -> list[Damage]:
        # A resource that compares what was read does not care who holds which lock.
        return [] if test.get("guard") == "compare-and-set" else _stale(register, owners)

    on = faults(history)
    evidence = [
        _evidence(damage, register, on)
        for register in found
        for damage in (*_lost(register), *_missing(register), *stale(register))
    ]
    evidence.sort(key=lambda row: row["time_ns"])
    details |= {kind: sum(1 for e in evidence if e["kind"] == kind) for kind in KINDS}
    if not evidence:
        summary = (
            f"{count(accepted, 'accepted write')}, each there and on top of what its writer read."
        )
        return Verdict(True, summary, [], details)
    counts = ", ".join(f"{details[kind]} {words}" for kind, words in KINDS.items() if details[kind])
    return Verdict(False, f"Of {count(accepted, 'accepted write')}: {counts}.", evidence, details)


def _lost(register: Register) -> list[Damage]:
    """Writes that were applied to another version than the one that their writer had read."""
    rivals = _rivals(register.writes)
    shown = {read.value.get("version"): read for read in register.reads}
    overtaken = _Overtaken(register.reads)
    found: list[Damage] = []
    for write in register.writes:
        if write.built_on is None:
            continue
        why = _why_lost(write, rivals.get(write.built_on, write), shown, overtaken)
        if why:
            found.append(("lost_update", write, why))
    return found


def _rivals(writes: list[Write]) -> dict[int, Write]:
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


def _why_lost(
    write: Write, rival: Write, shown: Mapping[Any, Call], overtaken: _Overtaken
) -> str | None:
    assert write.built_on is not None
    expected = write.built_on + 1
    if write.stored is not None:
        if write.stored == expected:
            return None
        return f"the resource stored it as version {write.stored}, on top of {write.stored - 1}"
    if rival is not write:
        return f"the write {rival.value!r} of process {rival.process} built on it as well"
    read = shown.get(expected)
    if read is not None and read.value.get("value") != write.value:
        return (
            f"version {expected}, which should be this write, was read as "
            f"{read.value.get('value')!r} by process {read.begin.process}"
        )
    highest = overtaken.before(write.begin)
    if highest is not None and highest > write.built_on:
        return f"version {highest} had been read before it was sent"
    return None


class _Overtaken:
    """The highest version that any read had returned before a point of the history."""

    def __init__(self, reads: list[Call]) -> None:
        done = sorted(
            (read.end.index, read.value["version"])
            for read in reads
            if read.end and isinstance(read.value.get("version"), int)
        )
        self._at = [index for index, _ in done]
        self._highest = list(accumulate((version for _, version in done), max))

    def before(self, index: int) -> int | None:
        place = bisect_left(self._at, index)
        return self._highest[place - 1] if place else None


def _missing(register: Register) -> list[Damage]:
    """Acknowledged writes that a later read proves to be gone: the version went back."""
    later = [
        (read.begin.index, int(read.value["version"]), read)
        for read in sorted(register.reads, key=lambda read: read.begin.index)
        if isinstance(read.value.get("version"), int)
    ]
    starts = [index for index, _, _ in later]
    lowest: list[tuple[int, Call]] = []
    for _, version, read in reversed(later):
        if not lowest or version < lowest[-1][0]:
            lowest.append((version, read))
        else:
            lowest.append(lowest[-1])
    lowest.reverse()
    found: list[Damage] = []
    taken: dict[int, list[Write]] = {}
    for write in register.writes:
        if write.stored is not None:
            taken.setdefault(write.stored, []).append(write)
    for write in register.writes:
        reached = write.stored
        if reached is None and write.built_on is not None:
            reached = write.built_on + 1
        place = bisect_right(starts, write.done)
        if not write.acknowledged or reached is None:
            continue
        replaced = _replaced(write, taken)
        if replaced:
            found.append(("missing", write, replaced))
            continue
        if place == len(later):
            continue
        seen, read = lowest[place]
        if seen < reached:
            why = (
                f"process {read.begin.process} read version {seen}, "
                f"{read.value.get('value')!r}, at {seconds(read.begin.time)}"
            )
            found.append(("missing", write, why))
    return found


def _replaced(write: Write, taken: Mapping[int, list[Write]]) -> str | None:
    """Why its version is not its own any more: a write sent afterwards was given the same."""
    for other in taken.get(write.stored or 0, ()):
        if other.begin > write.done:
            return (
                f"version {write.stored} was given again, to the write {other.value!r} of "
                f"process {other.process}"
            )
    return None


def _stale(register: Register, owners: Mapping[str, Hold]) -> list[Damage]:
    """Writes of a hold that were accepted after a write of a hold granted later."""
    found: list[Damage] = []
    latest: Hold | None = None
    for applied, write in in_order(register.writes):
        hold = owners.get(write.hold or "")
        if hold is None:
            continue
        if applied:
            latest = max(latest or hold, hold, key=lambda h: h.start)
        elif latest is not None and hold.lock == latest.lock and hold.start < latest.start:
            why = (
                f"its hold {hold.name} was granted at {seconds(hold.start)}, and {latest.who}, "
                f"granted hold {latest.name} at {seconds(latest.start)}, had written before"
            )
            found.append(("stale", write, why))
    return found


def _evidence(damage: Damage, register: Register, on: list[Fault]) -> dict[str, Any]:
    kind, write, why = damage
    return {
        "kind": kind,
        "what": (
            f"{write.value!r}, written by {write.who} and accepted by {seconds(write.done_ns)}, "
            f"{_HEAD[kind].format(built_on=write.built_on)} {why}."
            f"{during(on, write.sent_ns, write.done_ns)}"
        ),
        "time_ns": write.done_ns,
        "resource": register.name,
        "ops": [write.begin, write.done],
    }
