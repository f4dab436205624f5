"""What the timeline draws: lanes, holds, overlaps, writes and faults, as plain tables.

The browser draws and decides nothing: which holds there are, until when they were believed
and which overlap is asked of the checkers' own functions, so that the picture cannot differ
from the verdict. Every table is {"columns": [...], "rows": [[...]]}; times are whole µs since
the test's start, `null` where an end was never seen.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from fencepost.checker.clocks import Clocks
from fencepost.checker.faults import Fault, faults
from fencepost.checker.history import Call, History
from fencepost.checker.holds import FOREVER, Hold, Overlap, believed, holds, overlaps, strictly
from fencepost.checker.writes import registers

NOWHERE = "clients"
"""The lane of ops that name no node."""

_HOLD = (
    *("lane", "row", "name", "lock", "process", "token"),
    *("start", "believed", "deadline", "until", "ended_by"),
)
_OVERLAP = ("first", "second", "start", "until", "believed")
_WRITE = ("lane", "time", "sent", "state", "value", "token", "hold", "error")
_FAULT = ("words", "family", "start", "until", "lanes", "edges", "proved")

DEEPEST = 6
"""Rows of one lane at most; holds beyond share the last row, where they would only blur."""


def timeline(history: History, test: Mapping[str, Any]) -> dict[str, Any]:
    """Everything the timeline needs, ready for JSON."""
    found = holds(history, test)
    on = faults(history)
    writes = list(outcomes(history))
    lanes = _lanes(test, found, writes, on)
    place = {name: number for number, (name, _) in enumerate(lanes)}
    rows = _rows(found)
    depth = [1] * len(lanes)
    for hold, row in zip(found, rows, strict=True):
        lane = place[hold.node or NOWHERE]
        depth[lane] = max(depth[lane], row + 1)
    return {
        "end": _us(_length_ns(history, test)),
        "lanes": table(
            ("name", "kind", "depth"),
            ((name, kind, depth[number]) for number, (name, kind) in enumerate(lanes)),
        ),
        "holds": table(
            _HOLD,
            (
                _hold(hold, place[hold.node or NOWHERE], row)
                for hold, row in zip(found, rows, strict=True)
            ),
        ),
        "overlaps": table(_OVERLAP, _overlaps(found, Clocks(test))),
        "writes": table(
            _WRITE,
            (_write(call, state, place) for call, state in writes),
        ),
        "faults": table(
            _FAULT,
            (_fault(fault, place) for fault in on),
        ),
    }


def outcomes(history: History) -> Iterable[tuple[Call, str]]:
    """Each write and what became of it: "accepted", "refused" or "unknown".

    One without an answer was accepted if somebody read what it wrote.
    """
    accepted = {write.begin for register in registers(history) for write in register.writes}
    for call in history.calls():
        if call.begin.f == "write":
            state = "accepted" if call.begin.index in accepted else "unknown"
            yield call, "refused" if call.type == "fail" else state


def affected(fault: Fault) -> list[str]:
    """The nodes a fault touches: its targets, and both ends of every link that it cuts."""
    links = [str(node) for link in fault.arguments.get("links") or () for node in link]
    return list(dict.fromkeys([*map(str, fault.targets), *links]))


def struck(fault: Fault) -> list[str]:
    """The nodes that the fault is about: of links that all end at one node, that node.

    A server that is cut off from nine others is one node's trouble, not ten's.
    """
    links = [{str(node) for node in link} for link in fault.arguments.get("links") or ()]
    centre = set.intersection(*links) if links else set()
    return [node for node in affected(fault) if node in centre] or affected(fault)


def table(columns: Iterable[str], rows: Iterable[Iterable[Any]]) -> dict[str, Any]:
    """Rows as the page's script reads them."""
    return {"columns": list(columns), "rows": [list(row) for row in rows]}


def _us(time_ns: float) -> int | None:
    return None if time_ns == FOREVER else round(time_ns / 1000)


def _digits(token: int | None) -> str | None:
    """A token as text: a browser's numbers lose the last digits of a long one."""
    return None if token is None else str(token)


def _length_ns(history: History, test: Mapping[str, Any]) -> int:
    """How long the picture is: to the last op, or as long as the test was to run if it has none."""
    return history.end_ns or int(float(test.get("time_s") or 1) * 1e9)


def _lanes(
    test: Mapping[str, Any], found: list[Hold], writes: list[tuple[Call, str]], on: list[Fault]
) -> list[tuple[str, str]]:
    """One lane a client node, then one for each other node that a fault touched."""
    seen = [hold.node or NOWHERE for hold in found]
    seen += [call.begin.node or NOWHERE for call, _ in writes]
    clients = list(dict.fromkeys([*map(str, test.get("clients") or ()), *seen]))
    touched = {node for fault in on for node in affected(fault)} - set(clients)
    known = [str(node) for node in test.get("servers") or () if node in touched]
    rest = sorted(touched - set(known))
    return [(name, "client") for name in clients] + [(name, "server") for name in known + rest]


def _rows(found: list[Hold]) -> list[int]:
    """A row in its lane for each hold: the first one that no earlier hold still takes up."""
    taken: dict[str, list[float]] = {}
    rows = []
    for hold in found:
        ends = taken.setdefault(hold.node or NOWHERE, [])
        row = next((r for r, end in enumerate(ends) if end <= hold.start), len(ends))
        row = min(row, DEEPEST - 1)
        ends[row : row + 1] = [hold.strict_end]
        rows.append(row)
    return rows


def _hold(hold: Hold, lane: int, row: int) -> tuple[Any, ...]:
    spans = [[_us(start), _us(end)] for start, end in hold.believed]
    return (
        lane,
        row,
        hold.name,
        hold.lock,
        hold.process,
        _digits(hold.token),
        _us(hold.start),
        spans,
        _us(hold.deadline),
        _us(hold.strict_end),
        hold.ended_by,
    )


def _overlaps(found: list[Hold], clocks: Clocks) -> Iterable[tuple[Any, ...]]:
    """Overlaps of strict holds and of believed ones; holds by their position in the table."""
    place = {hold.index: number for number, hold in enumerate(found)}

    def row(overlap: Overlap, leased: bool) -> tuple[Any, ...]:
        first, second = place[overlap.first.index], place[overlap.second.index]
        return first, second, _us(overlap.start), _us(overlap.end), leased

    for overlap in overlaps(strictly(found), clocks):
        yield row(overlap, False)
    for overlap in overlaps(believed(found), clocks):
        yield row(overlap, True)


def _write(call: Call, state: str, place: Mapping[str, int]) -> tuple[Any, ...]:
    """A write at the time it was answered, or sent where no answer came."""
    value = call.begin.value
    return (
        place[call.begin.node or NOWHERE],
        _us((call.end or call.begin).time),
        _us(call.begin.time),
        state,
        value.get("value"),
        _digits(value.get("token")),
        value.get("hold"),
        " ".join(map(str, call.end.error)) if call.end and call.end.error else None,
    )


def _fault(fault: Fault, place: Mapping[str, int]) -> tuple[Any, ...]:
    lanes = [place[node] for node in struck(fault)]
    edges = [place[node] for node in affected(fault) if place[node] not in lanes]
    end = None if fault.end is None else _us(fault.end)
    return fault.what, fault.family, _us(fault.start), end, lanes, edges, fault.proved
