"""The writes that the resource accepted, as far as the history proves it, and their order.

A write counts as accepted when it was acknowledged, or when somebody later read its value:
values are unique in a run. The resource numbers what it accepts, one by one; where neither
the acknowledgement (`stored`) nor a read gives a write's number, real time has to do.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from checker.history import Call, History


@dataclass(frozen=True)
class Write:
    """One accepted write. `built_on` and `stored` are versions; indices are the history's."""

    process: int | str
    node: str | None
    value: Any
    hold: str | None
    token: int | None
    built_on: int | None
    stored: int | None
    acknowledged: bool
    begin: int
    sent_ns: int
    done: int
    done_ns: int

    @property
    def who(self) -> str:
        return f"{self.node or 'a client'} (process {self.process})"


@dataclass(frozen=True)
class Register:
    """One resource: the writes that it accepted and the reads that it answered."""

    name: Any
    writes: list[Write]
    reads: list[Call]


def registers(history: History) -> Iterator[Register]:
    """Every resource that was written to, with its accepted writes in order of invocation."""
    calls = history.calls()
    for name in dict.fromkeys(c.begin.value.get("resource") for c in calls if c.begin.f == "write"):
        mine = [c for c in calls if c.begin.value.get("resource") == name]
        reads = [c for c in mine if c.begin.f == "read" and c.type == "ok"]
        shown: dict[str, Call] = {}
        for read in reads:
            shown.setdefault(repr(read.value.get("value")), read)
        writes = [
            _write(call, shown.get(repr(call.begin.value.get("value"))))
            for call in mine
            if call.begin.f == "write"
        ]
        yield Register(name, [w for w in writes if w is not None], reads)


def _write(call: Call, read: Call | None) -> Write | None:
    done = call.end if call.type == "ok" else None
    if done is None and read is not None and call.type == "info":
        done = read.end
    if done is None:
        return None
    value = call.begin.value
    stored = call.value.get("stored")
    if stored is None and read is not None:
        stored = read.value.get("version")
    hold, version = value.get("hold"), value.get("version")
    return Write(
        process=call.begin.process,
        node=call.begin.node,
        value=value.get("value"),
        hold=None if hold is None else str(hold),
        token=value.get("token"),
        built_on=version if isinstance(version, int) else None,
        stored=stored if isinstance(stored, int) else None,
        acknowledged=call.type == "ok",
        begin=call.begin.index,
        sent_ns=call.begin.time,
        done=done.index,
        done_ns=done.time,
    )


def in_order(writes: list[Write]) -> list[tuple[bool, Write]]:
    """Each write twice: False where it can not have come earlier, True once surely applied.

    By the resource's numbers where all are known, else by real time.
    """
    if all(write.stored is not None for write in writes):
        ordered = sorted(writes, key=lambda write: write.stored or 0)
        return [(applied, write) for write in ordered for applied in (False, True)]
    events = [(write.begin, False, write) for write in writes]
    events += [(write.done, True, write) for write in writes]
    return [(applied, write) for _, applied, write in sorted(events, key=lambda e: e[:2])]
