"""Reads the JSON files of a run's folder, from whoever wrote them, and checks their types.

    test.json       the request: the spec, the seed, the schedule. Written once, before the run.
    run.json        facts learnt later: versions, clocks, when clients were ready, triggers.
    results.json    the verdicts.
    messages.json   the messages of a counterexample (hunt/story/messages.py), for its drawing.

`description` merges the first two; checkers and reports read no other. Folders of versions before
0.2 have everything in test.json and no run.json, and are read the same way.

Files that fencepost wrote pass. An unknown field is kept as it is. A known field must have the type
that its readers rely on; otherwise the file is refused and the field named.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import UNSET, UnsetType

from fencepost import plainfile
from fencepost.strictjson import decode

TEST, FACTS, RESULTS = "test.json", "run.json", "results.json"
MESSAGES = "messages.json"
SCHEMA = 1
"""The version of results.json; report/results.schema.json describes its fields."""

# No real time, seed or port is larger, and computing with a huge number fills the memory.
_Whole = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
_Length = Annotated[float, msgspec.Meta(ge=0, le=1e12)]
_Time = Annotated[float, msgspec.Meta(ge=-1e19, le=1e19)]
_Words = list[str] | UnsetType
T = TypeVar("T", bound=msgspec.Struct)
_Valid = bool | Literal["unknown"] | None


class _Lock(msgspec.Struct):
    name: str | UnsetType = UNSET
    options: dict[str, Any] | UnsetType = UNSET
    ends_with: str | UnsetType = UNSET


class _Clock(msgspec.Struct):
    bound_ns: _Length | UnsetType = UNSET


class _Fault(msgspec.Struct):
    at_s: _Length | UnsetType = UNSET
    duration_s: _Length | UnsetType = UNSET
    family: str | UnsetType = UNSET
    targets: _Words = UNSET
    arguments: dict[str, Any] | UnsetType = UNSET


class _Scenario(msgspec.Struct):
    name: str | UnsetType = UNSET
    claim: str | UnsetType = UNSET
    source: str | UnsetType = UNSET
    what: str | UnsetType = UNSET
    steps: _Words = UNSET
    expected: dict[str, Any] | UnsetType = UNSET


class _Hunt(msgspec.Struct):
    command: str | UnsetType = UNSET
    story: _Words = UNSET
    drawing: _Words = UNSET
    broken: _Words = UNSET


class _Test(msgspec.Struct):
    """The fields of test.json and run.json."""

    name: str | UnsetType = UNSET
    lock: _Lock | UnsetType | None = UNSET
    guard: str | UnsetType = UNSET
    lockless: bool | UnsetType = UNSET
    lower_only: bool | UnsetType = UNSET
    servers: _Words = UNSET
    clients: _Words = UNSET
    checkers: _Words = UNSET
    not_checked: dict[str, str] | UnsetType = UNSET
    nemesis: _Words | None = UNSET
    promises: dict[str, Any] | UnsetType = UNSET
    clocks: dict[str, _Clock] | UnsetType | None = UNSET
    lacks: dict[str, list[str]] | UnsetType = UNSET
    crash_lines: _Words = UNSET
    loss_lines: _Words = UNSET
    time_s: _Length | UnsetType = UNSET
    ttl_ms: _Length | UnsetType = UNSET
    interval_s: _Length | UnsetType = UNSET
    liveness_bound_s: _Length | UnsetType = UNSET
    ready_s: _Length | UnsetType = UNSET
    began_unix_s: _Length | UnsetType = UNSET
    shared: _Length | bool | UnsetType = UNSET
    failed_release: Literal["ended", "nothing"] | UnsetType = UNSET
    until: _Words = UNSET
    seed: _Whole | UnsetType | None = UNSET
    scheduled: bool | UnsetType = UNSET
    scenario: _Scenario | UnsetType | None = UNSET
    schedule: list[_Fault] | UnsetType = UNSET
    server: dict[str, str] | UnsetType = UNSET
    started: str | UnsetType = UNSET
    simulated: bool | UnsetType = UNSET
    hunt: _Hunt | UnsetType | None = UNSET


class _Piece(msgspec.Struct):
    what: str
    time_ns: _Time | UnsetType | None = UNSET
    until_ns: _Time | UnsetType | None = UNSET
    holds: list[Any] | UnsetType | None = UNSET


class _Judged(msgspec.Struct):
    summary: str
    valid: _Valid | UnsetType = UNSET
    evidence: list[_Piece] | UnsetType = UNSET


class _Stats(msgspec.Struct):
    ops: _Whole | UnsetType = UNSET
    holds: _Whole | UnsetType = UNSET
    duration_s: _Time | UnsetType = UNSET
    by_f: dict[str, dict[str, _Whole]] | UnsetType = UNSET


class _Injected(msgspec.Struct):
    family: str | UnsetType = UNSET
    targets: _Words = UNSET
    arguments: dict[str, Any] | UnsetType = UNSET
    start_ns: _Time | UnsetType | None = UNSET
    end_ns: _Time | UnsetType | None = UNSET


class _Broken(msgspec.Struct):
    time_s: _Time


class _Segment(msgspec.Struct):
    segment: _Whole
    valid: _Valid
    checkers: dict[str, _Valid]
    duration_s: _Time
    ops: _Whole
    holds: _Whole
    faults: _Whole
    first_violation: _Broken | None = None


class _Results(msgspec.Struct):
    checkers: dict[str, _Judged]
    valid: _Valid | UnsetType = UNSET
    faults: list[_Injected] | UnsetType = UNSET
    stats: _Stats | UnsetType = UNSET
    first_violation: _Broken | UnsetType | None = UNSET
    segments: list[_Segment] | UnsetType = UNSET
    notes: _Words = UNSET
    run_notes: _Words = UNSET
    live: bool | UnsetType = UNSET


class Message(msgspec.Struct, frozen=True):
    """A message of a simulated run; hunt/story/messages.py has the meaning of each field."""

    source: str
    to: str
    words: str
    sent_ns: _Time = 0
    arrived_ns: _Time | None = None
    fate: str = ""
    call: _Whole = 0
    reply: bool = False
    f: str = ""
    op_ns: _Time = 0
    denied: bool = False


class Messages(msgspec.Struct):
    """The content of messages.json. `left_out`: the number of earlier messages."""

    messages: list[Message]
    left_out: _Whole = 0


def test(path: Path) -> dict[str, Any]:
    """Read one of test.json and run.json by itself.

    Raises:
        OSError: it cannot be read.
        ValueError: it is malformed; the text names the field and the problem.
    """
    return _read(path, _Test)


Reader = Callable[[Path], dict[str, Any]]


def description(run: Path, read: Reader = test) -> dict[str, Any]:
    """Return the description of the run in this folder: its test.json and run.json, merged.

    A history that another program wrote may have no test.json; run.json then has everything.
    Raises as `read` does, which reads each file; OSError if the folder has neither.
    """
    test, facts = run / TEST, run / FACTS
    if not plainfile.exists(facts):
        return read(test)
    return merged(read(test) if test.exists() else {}, read(facts))


def merged(asked: Mapping[str, Any], learnt: Mapping[str, Any]) -> dict[str, Any]:
    """Return the request with the fields of run.json over it; those of `lock` one by one."""
    found = {**asked, **learnt}
    if learnt.get("lock"):
        found["lock"] = {**(asked.get("lock") or {}), **learnt["lock"]}
    return found


def results(path: Path) -> dict[str, Any]:
    """Read a run's results.json. Raises as `test` does."""
    return _read(path, _Results)


def messages(path: Path) -> Messages:
    """Read a run's messages.json. Raises as `test` does."""
    return _converted(decode(plainfile.read(path)), Messages)


def _read(path: Path, type: type[msgspec.Struct]) -> dict[str, Any]:
    row: Any = decode(plainfile.read(path))
    _converted(row, type)
    found: dict[str, Any] = row
    return found


def _converted(row: Any, type: type[T]) -> T:
    if not isinstance(row, dict):
        raise ValueError("it is not a JSON object")
    try:
        return msgspec.convert(row, type)
    except msgspec.ValidationError as error:
        what, _, place = str(error).partition(" - at `$")
        raise ValueError(f"{place.strip('`.')}: {what}" if place else what) from error
