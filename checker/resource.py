"""`resource`: did the user's data survive?

The resource is a register with a version that rises by one with every write it accepts. A client
reads value and version, and later writes a new value and names the version it read. Four kinds of
damage are distinguished:

- *lost update*: an accepted write did not follow the write that its writer had read;
- *missing*: a later read did not show an acknowledged write;
- *stale*: a write was accepted after the write of a later hold of the same lock;
- *phantom*: a read showed a value that no write can have made: refused, sent later, or never
  sent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from fencepost.checker.checker import Checker, of_history
from fencepost.checker.facts.clocks import Clocks
from fencepost.checker.facts.faults import Fault, during, faults, over_time
from fencepost.checker.facts.holds import Hold, seconds
from fencepost.checker.facts.lost_updates import lost, missing
from fencepost.checker.facts.spans import Spans
from fencepost.checker.facts.stale import stale
from fencepost.checker.facts.time_order import Axes, tied
from fencepost.checker.facts.tokens import trusted
from fencepost.checker.facts.writes import Register, Write, owners, registers
from fencepost.checker.history.history import Call, History
from fencepost.checker.signs import GRANTED_BESIDE, VERSION_JUMPED, WROTE_LATE, any_of
from fencepost.checker.verdict import Verdict, count, noted
from fencepost.checker.why.cause import Causes, Link, as_sentences, cause, causes

KINDS = {
    "lost_update": ("lost update", "the write was based on a stale read"),
    "missing": ("missing write", "acknowledged, but not there later"),
    "stale": ("stale write", "accepted after a later holder's write"),
    "phantom": ("phantom read", "of a value that was refused or not written yet"),
}


@dataclass(frozen=True)
class _Damage:
    """Damage to the data: `what` describes it without the full stop; times in ns, `ops` indices.

    `write`: the damaging write; `by`: the other one that a lost update conflicts with. `since_ns`:
    when these were accepted at the earliest, by what a read or another write shows.
    """

    kind: str
    what: str
    begin_ns: int
    end_ns: int
    resource: Any
    ops: tuple[int, int]
    write: Write | None = None
    since_ns: int = 0
    by: Write | None = None

    def evidence(self, on: Spans[Fault], known: Causes) -> dict[str, Any]:
        why, what = _worked(known, self.write, self.since_ns), self.what
        if not why and self.by is not None:
            # This writer held the lock: the other one wrote at the wrong time.
            why = _worked(known, self.by, self.since_ns)
            what += _other(self.by) if why else ""
        return {
            "kind": self.kind,
            "what": f"{what}.{as_sentences(why) or during(on, self.begin_ns, self.end_ns)}",
            "time_ns": self.end_ns,
            **cause(why),
            "resource": self.resource,
            "ops": list(self.ops),
        }


def resource(history: History, test: Mapping[str, Any]) -> Verdict:
    """Check that every acknowledged write is there, follows the write that its writer read, and is
    not stale."""
    clocks = Clocks(test)
    axes = Axes(clocks, tied(history))
    found = registers(history, clocks)
    held = owners(trusted(history, test, clocks))
    guard = test.get("guard")
    # A test.json of before `lockless` says it by the guard's name.
    judged = not test.get("lockless", guard == "compare-and-set")
    on = over_time(faults(history))
    known = causes(history, test)
    evidence = [
        damage.evidence(on, known)
        for register in found
        for damage in _damages(register, held if judged else {}, axes)
    ]
    evidence.sort(key=lambda row: row["time_ns"])
    accepted = sum(len(register.writes) for register in found)
    refused = sum(1 for c in history.calls() if c.begin.f == "write" and c.type == "fail")
    untested = _untested(found, held, "" if judged else str(guard))
    details: dict[str, Any] = {"accepted": accepted, "refused": refused}
    if not accepted and not evidence:
        return Verdict("unknown", "No write was accepted: nothing was tested.", [], details)
    details |= {kind: sum(1 for e in evidence if e["kind"] == kind) for kind in KINDS}
    details["untested"] = untested
    if not evidence:
        summary = (
            f"{count(accepted, 'accepted write')}, each present and based on the version "
            "that its writer read."
        )
        return Verdict(True, noted(summary, untested), [], details)
    counts = ", ".join(
        f"{count(details[kind], noun)} ({words})"
        for kind, (noun, words) in KINDS.items()
        if details[kind]
    )
    summary = f"Of {count(accepted, 'accepted write')}: {counts}."
    return Verdict(False, noted(summary, untested), evidence, details)


def _untested(found: list[Register], held: Mapping[str, Hold], lockless: str) -> list[str]:
    """Return the properties that this history could not have shown to be violated. `lockless`: the
    guard, if it needs no lock.
    """
    writes = [write for register in found for write in register.writes]
    untested = [
        f"{register.name} (no write was accepted)" for register in found if not register.writes
    ]
    if all(write.built_on is None for write in writes):
        untested.append("lost updates (no write names the version that its writer read)")
    elif all(len(register.writes) < 2 for register in found):
        untested.append("lost updates (no resource accepted two writes)")
    if not any(map(_asked_again, found)):
        untested.append("missing writes (nothing was answered that began after an accepted write)")
    if lockless:
        # Such a guard accepts a write whichever hold it was made under.
        untested.append(f"stale writes (guard {lockless})")
    elif not any(write.hold in held for write in writes):
        untested.append("stale writes (no write was made under a hold)")
    elif all(len({w.hold for w in register.writes if w.hold in held}) < 2 for register in found):
        untested.append("stale writes (no resource accepted writes under two holds)")
    return untested


def _asked_again(register: Register) -> bool:
    """Return whether a read or an accepted write began after an accepted write."""
    first = min((write.done for write in register.writes), default=None)
    begun = [write.begin for write in register.writes]
    begun += [read.call.begin.index for read in register.reads]
    return first is not None and any(first < at for at in begun)


def _damages(register: Register, held: Mapping[str, Hold], axes: Axes) -> Iterator[_Damage]:
    reads = _Reads(register)
    for found in lost(register, axes):
        write = found.write
        what = f"built on version {write.built_on}, but {found.why}"
        yield _of(register, "lost_update", write, what, reads.began(write), found.by)
    for write, why in missing(register, axes):
        yield _of(register, "missing", write, f"was acknowledged and is missing: {why}")
    for write, other in stale(register, held, axes):
        why = _why_stale(write, other, held)
        what = f"was accepted though stale: {why}"
        yield _of(register, "stale", write, what, other.sent_ns)
    for read, source in register.phantoms:
        yield _phantom(register, read, source)


class _Reads:
    """When the read that a write is based on began: a write that it does not show was accepted
    later."""

    def __init__(self, register: Register) -> None:
        self._register = register
        self._begun: dict[tuple[int | str, int], list[int]] | None = None

    def began(self, write: Write) -> int:
        """Return when the last read of that version by the same process began; 0 for none."""
        if self._begun is None:
            self._begun = {}
            for read in self._register.reads:
                if read.version is not None:
                    key = read.call.begin.process, read.version
                    self._begun.setdefault(key, []).append(read.call.begin.time)
        begun = self._begun.get((write.process, write.built_on or 0), ())
        return max((at for at in begun if at <= write.sent_ns), default=0)


def _worked(known: Causes, write: Write | None, since_ns: int) -> list[Link]:
    if write is None:
        return []
    return known.worked(write.hold, write.done_ns, sent=write.sent_ns, since=since_ns)


def _other(write: Write) -> str:
    return (
        f"; {write.value!r} was sent by {write.who} under hold {write.hold} at "
        f"{seconds(write.sent_ns)}, and accepted by {seconds(write.done_ns)}"
    )


def _of(
    register: Register,
    kind: str,
    write: Write,
    what: str,
    since_ns: int = 0,
    by: Write | None = None,
) -> _Damage:
    return _Damage(
        kind,
        f"{write.value!r}, written by {write.who} and accepted by {seconds(write.done_ns)}, {what}",
        write.sent_ns,
        write.done_ns,
        register.name,
        (write.begin, write.done),
        write,
        since_ns,
        by,
    )


def _why_stale(write: Write, other: Write, held: Mapping[str, Hold]) -> str:
    mine, later = held[write.hold or ""], held[other.hold or ""]
    return (
        f"{other.who} had written {other.value!r} before under hold {later.name}{_token(later)}, "
        f"granted at {seconds(later.start)}, which is later than its own hold "
        f"{mine.name}{_token(mine)}, granted at {seconds(mine.start)}"
    )


def _token(hold: Hold) -> str:
    return "" if hold.token is None else f" (token {hold.token})"


def _phantom(register: Register, read: Call, write: Call | None) -> _Damage:
    assert read.end is not None
    if write is None:
        why = "and no process had written it"
    elif write.type == "fail" and write.end is not None:
        why = f"and its write by {_who(write)} failed at {seconds(write.end.time)}"
    else:
        why = f"and {_who(write)} did not send it before {seconds(write.begin.time)}"
    return _Damage(
        "phantom",
        f"{read.get('value')!r} was read by {_who(read)} at {seconds(read.end.time)}, {why}",
        read.begin.time,
        read.end.time,
        register.name,
        (read.begin.index, read.end.index),
    )


def _who(call: Call) -> str:
    return f"{call.begin.node or 'a client'} (process {call.begin.process})"


CHECKER = Checker(
    name="resource",
    question="Every acknowledged write is present, based on the version that its writer read.",
    about=("resource",),
    check=of_history(resource),
    column="resource",
    goal=True,
    goal_rank=60,
    suspect=any_of(GRANTED_BESIDE, WROTE_LATE, VERSION_JUMPED),
    touches=lambda history: any(op.f == "write" for op in history.clients()),
)
