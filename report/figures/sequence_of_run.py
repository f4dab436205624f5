"""The sequence diagram of a run: from its messages if it is simulated, otherwise from its ops.

A real run records no message. An op is then drawn as a request of its client and its answer: to the
lock as a whole, or to the resource. When the service handled it is not known.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fencepost.checker.facts.faults import Fault
from fencepost.checker.facts.holds import Hold
from fencepost.checker.history.history import Call
from fencepost.report.figures.sequence import MOST, Evidence, chosen, evidence_of, holds_of, window
from fencepost.report.figures.sequence_drawing import Drawing, drawing
from fencepost.report.figures.table import short
from fencepost.report.stored import Run
from fencepost.runfiles import Message

STORAGE, RESOURCE = "storage", "resource"
_SIMULATED = "Messages between the clients and the models of the servers."
_REAL = (
    "Each pair of arrows is an op and its answer, as its client recorded them; when the service "
    "handled it is not known."
)
_ENOUGH = 50 * MOST
"""Ops of a window that are considered: those of one lock and around a violation are few."""


@dataclass(frozen=True)
class Picture:
    """A drawing, and a note on where its arrows come from."""

    drawn: Drawing
    note: str


def sequence_of(
    run: Run, found: Sequence[Hold], on: Sequence[Fault], order: Sequence[str]
) -> Picture | None:
    """Return the picture of the first violation of a run, or None if there is nothing to draw.

    `order`: the checkers in the order of the page; a counterexample's own comes first.
    """
    test = run.test
    goals = [str(name) for name in (test.get("hunt") or {}).get("broken") or ()]
    checkers = (run.results or {}).get("checkers") or {}
    broken = evidence_of(checkers, dict.fromkeys([*goals, *order]), run.history)
    if not broken:
        return None
    clients, servers = (list(map(str, test.get(side) or ())) for side in ("clients", "servers"))
    if test.get("simulated"):
        shown = chosen(run.messages, broken, found, on, [*clients, *servers, STORAGE])
    else:
        lock = str((test.get("lock") or {}).get("name") or "lock")
        messages = list(_messages(run, broken, found, lock))
        shown = chosen(messages, broken, found, on, [*clients, lock, *servers, RESOURCE])
    if shown is None:
        return None
    return Picture(drawing(shown), _SIMULATED if test.get("simulated") else _REAL)


def _messages(
    run: Run, broken: Sequence[Evidence], found: Sequence[Hold], lock: str
) -> Iterator[Message]:
    """Yield the ops of the time of a violation as messages."""
    about_holds = holds_of(broken[0], found)
    start, end = window(broken, about_holds)
    piece = broken[0].piece
    about = {str(piece[name]) for name in ("lock", "resource") if piece.get(name) is not None}
    locks = {hold.lock for hold in about_holds if hold.name in broken[0].holds} | about
    kept = 0
    for number, call in enumerate(run.history.calls()):
        if call.begin.time > end or kept > _ENOUGH:
            break
        ended = end if call.end is None else call.end.time
        if ended < start or call.begin.f not in _ASKED or not _concerns(call, locks):
            continue
        kept += 1
        yield from _exchange(number, call, lock)


def _concerns(call: Call, locks: set[str]) -> bool:
    """Return whether an op is about one of these locks, or about the data."""
    name = call.get("lock")
    return name is None or not locks or str(name) in locks


def _exchange(number: int, call: Call, lock: str) -> Iterator[Message]:
    f, begun, client = call.begin.f, call.begin.time, str(call.begin.node or "client")
    to = lock if f in _OF_THE_LOCK else RESOURCE
    asked = _ASKED[f](call)
    if call.end is None or call.type == "info":
        yield Message(client, to, asked, begun, None, "unknown", number, False, f, begun)
        return
    ended = call.end.time
    yield Message(client, to, asked, begun, begun, "", number, False, f, begun)
    ok = call.type == "ok"
    words = _ANSWERED.get(f, _ok)(call) if ok else _refused(call)
    yield Message(to, client, words, ended, ended, "", number, True, f, begun, not ok)


def _ok(call: Call) -> str:
    return "ok"


def _refused(call: Call) -> str:
    error = None if call.end is None else call.end.error
    return str(error[0]) if error else "refused"


def _granted(call: Call) -> str:
    token = call.get("token")
    return "granted" if token is None else f"granted, token {short(token)}"


def _ask(call: Call) -> str:
    ttl = call.get("ttl")
    usable = isinstance(ttl, int | float) and not isinstance(ttl, bool)
    lease = f", TTL {ttl / 1e9:.3g} s" if usable else ""
    return f"{call.begin.f} {short(str(call.get('lock') or ''))}{lease}"


def _write(call: Call) -> str:
    token = call.get("token")
    with_token = "no token" if token is None else f"token {short(token)}"
    return f"write on version {short(call.get('version'))}, {with_token}"


def _version(call: Call) -> str:
    version = call.get("stored") if call.get("stored") is not None else call.get("version")
    return "ok" if version is None else f"version {short(version)}"


_OF_THE_LOCK = ("acquire", "extend", "release")
_ASKED = {
    "acquire": _ask,
    "extend": _ask,
    "release": _ask,
    "read": lambda call: "read",
    "write": _write,
}
_ANSWERED = {"acquire": _granted, "read": _version, "write": _version}
