"""Turns events into calls: pairs invocations with their completions.

An event is a mapping with at least `process`, `type`, `f` and `value`, as in fencepost's
history.jsonl or Jepsen's history.edn. Nothing is skipped silently, because a wrong guess about what
a client saw gives a wrong verdict. So anything malformed raises `BadHistory`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from typing import Any, Final, NamedTuple

NEMESIS: Final = "nemesis"
SPONTANEOUS: Final = frozenset({"lost", "renewed"})  # notices of a client's library


class Unknown(Enum):
    """The unknown result of an op that did not return."""

    UNKNOWN = "?"

    def __repr__(self) -> str:
        return "?"


UNKNOWN: Final = Unknown.UNKNOWN


class Unsent(Enum):
    """The result of a request that failed because no server received it."""

    UNSENT = "unsent"


UNSENT: Final = Unsent.UNSENT


class BadHistory(ValueError):
    """Input cannot be understood: `file` (or None), `line` (or None, from 1), `reason`."""

    def __init__(self, reason: str, line: int | None = None, file: str | None = None) -> None:
        super().__init__(reason, line, file)
        self.reason, self.line, self.file = reason, line, file

    def __str__(self) -> str:
        place = self.file or "history"
        return f"{place}:{self.line}: {self.reason}" if self.line else f"{place}: {self.reason}"

    def at(self, line: int | None = None, file: str | None = None) -> BadHistory:
        """Return the same error with missing file and line filled in."""
        return BadHistory(self.reason, self.line or line, self.file or file)


class Call(NamedTuple):
    """One op of one process, from its invocation to its completion, not interpreted by a model yet.

    `type` is ok, fail or info; an op that never completed is info. `value` is that of the
    invocation, `result` that of the completion (UNKNOWN for info; UNSENT for one that failed with
    the error kind `unreachable`). `invoked` and `returned` are
    positions of events in the history, from 0; `returned` is None for info. `time` and `ended` are
    the times of these two events in ns, or None. `line` is that of the invocation, from 1.
    """

    process: int | str
    f: str
    type: str
    value: Any
    result: Any
    invoked: int
    returned: int | None
    time: int | None
    ended: int | None
    line: int


def calls(numbered: Iterable[tuple[int, Mapping[str, Any]]]) -> Iterator[Call]:
    """Pair (line, event), in the order of the history, into Calls.

    A Call is yielded as soon as its completion was seen; calls that never complete come last.
    Events of the nemesis are skipped. Raises BadHistory for a completion without invocation, two
    open ops of one process, a completion of another f, an invalid type or process, or a time other
    than whole ns.
    """
    open_ops: dict[int | str, tuple[str, Any, int, int | None, int]] = {}
    for position, (line, event) in enumerate(numbered):
        try:
            process, kind, f = event["process"], event["type"], event["f"]
        except (KeyError, TypeError):
            raise BadHistory(_incomplete(event), line) from None
        time = event.get("time")
        if type(process) is not int or type(f) is not str:
            if process == NEMESIS:
                continue
            _require_names(process, f, line)
        if time is not None and type(time) is not int:
            raise BadHistory(f"time must be an integer of ns, not {time!r:.40}", line)
        if kind == "invoke":
            if process in open_ops:
                other, _, _, _, since = open_ops[process]
                raise BadHistory(
                    f"process {process} invokes {f}, and its {other} of line {since} is still open",
                    line,
                )
            open_ops[process] = (f, event.get("value"), position, time, line)
            continue
        opened = open_ops.pop(process, None)
        if opened is None:
            if kind == "info" and f in SPONTANEOUS:
                # A notice of the client's library, which has no invocation.
                yield Call(
                    process, f, kind, event.get("value"), UNKNOWN, position, None, time, None, line
                )
                continue
            _require_type(kind, line)
            raise BadHistory(f"process {process} completes {f}, which it never invoked", line)
        began, value, invoked, at, opened_line = opened
        if f in SPONTANEOUS and kind == "info" and began != f:
            open_ops[process] = opened
            yield Call(
                process, f, kind, event.get("value"), UNKNOWN, position, None, time, None, line
            )
            continue
        if began != f:
            raise BadHistory(
                f"process {process} completes {f}, but line {opened_line} invoked {began}", line
            )
        if kind == "ok" or kind == "fail":
            yield Call(
                process,
                f,
                kind,
                value,
                UNSENT if kind == "fail" and _unreachable(event) else event.get("value"),
                invoked,
                position,
                at,
                time,
                opened_line,
            )
        else:
            _require_type(kind, line)
            yield Call(process, f, "info", value, UNKNOWN, invoked, None, at, None, opened_line)
    for process, (f, value, invoked, at, opened_line) in open_ops.items():
        yield Call(process, f, "info", value, UNKNOWN, invoked, None, at, None, opened_line)


def _unreachable(event: Mapping[str, Any]) -> bool:
    error = event.get("error")
    kind = error[0] if isinstance(error, list | tuple) and error else error
    return isinstance(kind, str) and kind == "unreachable"


def _incomplete(event: Any) -> str:
    if not isinstance(event, Mapping):
        return f"an event must be a mapping, this is {event!r:.60}"
    missing = [name for name in ("process", "type", "f") if name not in event]
    return f"the event has no {' and no '.join(missing)}"


def _require_type(kind: Any, line: int) -> None:
    if kind not in ("ok", "fail", "info"):  # invocations are handled by the caller
        raise BadHistory(f"type must be invoke, ok, fail or info, not {kind!r:.40}", line)


def _require_names(process: Any, f: Any, line: int) -> None:
    if isinstance(process, bool) or not isinstance(process, int | str):
        raise BadHistory(
            f'process must be an integer, a name or "nemesis", not {process!r:.40}', line
        )
    if not isinstance(f, str):
        raise BadHistory(f"f must be a name, not {f!r:.40}", line)
