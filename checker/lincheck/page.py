"""Renders a verdict's evidence as one HTML page that opens offline.

The page's code is page.html next to this file. This module builds its data: plain JSON, cut down to
what a browser can draw and a person can read.
"""

from __future__ import annotations

import json
from collections.abc import Hashable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fencepost.checker.lincheck.evidence import Evidence, described
from fencepost.checker.lincheck.model import Model
from fencepost.checker.lincheck.operation import Operation
from fencepost.checker.lincheck.verifier import Step

if TYPE_CHECKING:
    from fencepost.checker.lincheck.verdict import Verdict

MOST_DRAWN = 300  # largest number of an object's ops on the page
MOST_OBJECTS = 50
LONGEST_STATE = 200  # characters


def page(file: str, verdict: Verdict, evidence: Evidence) -> str:
    """Return the page for this verdict on this file."""
    template = Path(__file__).with_name("page.html").read_text(encoding="utf-8")
    # In a script element only "<" could end it early.
    data = json.dumps(page_data(file, verdict, evidence)).replace("<", "\\u003c")
    return template.replace("__DATA__", data)


def page_data(file: str, verdict: Verdict, evidence: Evidence) -> dict[str, Any]:
    """Return the page's data, ready for JSON."""
    keys = list(evidence.linearizations)[:MOST_OBJECTS]
    if verdict.valid is False:
        keys = [verdict.key]
    elif not keys:
        keys = list(verdict.parts)[:1]
    return {
        "file": file,
        "valid": verdict.valid,
        "model": verdict.model.name,
        "operations": verdict.operations,
        "seconds": round(verdict.seconds, 6),
        "reason": verdict.reason or evidence.reason,
        "objects": [_object(key, verdict, evidence) for key in keys],
        "objects_left_out": max(0, len(verdict.parts) - len(keys)) if verdict.valid is True else 0,
    }


def _object(key: Hashable, verdict: Verdict, evidence: Evidence) -> dict[str, Any]:
    operations = sorted(verdict.parts.get(key, []))
    model, failed = verdict.model, evidence.failed
    small = evidence.small.operations if evidence.small is not None else ()
    drawn = _drawn(operations, failed, small)
    shown = {operation.id for operation in drawn}
    ways = [
        _way(model, partial.steps, shown)
        | {
            "state": _text(model.show(partial.state)),
            "blocked": [
                {"op": blocked.operation.id, "text": _line(blocked.operation), "why": blocked.why}
                for blocked in partial.blocked
            ],
        }
        for partial in evidence.partials
    ]
    if failed is None and key in evidence.linearizations:
        ways = [_way(model, evidence.linearizations[key], shown)]
    return {
        "key": None if key is None else str(key),
        "initial": _text(model.show(model.initial)),
        "left_out": len(operations) - len(drawn),
        "ops": [_op(operation) for operation in drawn],
        "ways": ways,
        "ways_in_all": evidence.configurations,
        "failed": None if failed is None else failed.id,
        "small": [operation.id for operation in small if operation.id in shown],
        "minimal": evidence.small is not None and evidence.small.minimal,
    }


def _drawn(
    operations: list[Operation], failed: Operation | None, small: tuple[Operation, ...]
) -> list[Operation]:
    """Return the ops around the failure and those of the sub-history; of a valid object, the
    first."""
    if failed is None:
        return operations[:MOST_DRAWN]
    assert failed.returned is not None
    before = [operation for operation in operations if operation.id < failed.returned]
    after = [operation for operation in operations if operation.id > failed.returned]
    own = {operation.id for operation in small[:MOST_DRAWN]}
    near = {operation.id for operation in before[-MOST_DRAWN:] + after[:8]}
    return [operation for operation in operations if operation.id in near | own]


def _op(operation: Operation) -> dict[str, Any]:
    return {
        "id": operation.id,
        "process": operation.process,
        "text": _line(operation),
        "returned": operation.returned,
        "line": operation.line,
        "time": operation.time,
        "ended": operation.ended,
    }


def _way(model: Model, steps: tuple[Step, ...], shown: set[int]) -> dict[str, Any]:
    """Return a linearization: its steps on the drawn ops, and the number of steps before those."""
    rows = []
    skipped = 0
    before = _text(model.show(model.initial))
    for step in steps:
        after = _text(model.show(step.state))
        if step.operation is None or step.operation.id in shown:
            rows.append(
                {
                    "op": None if step.operation is None else step.operation.id,
                    "text": described(step.action),
                    "before": before,
                    "after": after,
                }
            )
        else:
            skipped += 1
        before = after
    return {"steps": rows[-3 * MOST_DRAWN :], "skipped": skipped, "placed": len(steps)}


def _line(operation: Operation) -> str:
    return _text(described(operation.action))


def _text(text: str) -> str:
    return (
        text
        if len(text) <= LONGEST_STATE
        else (f"{text[: LONGEST_STATE // 2]} ... {text[-LONGEST_STATE // 2 :]}")
    )
