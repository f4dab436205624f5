"""Runs as data frames, for notebooks, spreadsheets and databases.

from fencepost.report import frames

run = frames.read("results/redlock/latest")
 frames.ops(run).to_csv("ops.csv")
 frames.holds(run).to_parquet("holds.parquet")
 frames.cells("results/matrix/latest").to_parquet("matrix.parquet")

`fencepost.load("redlock").to_pandas()` returns ops, holds, faults and tokens at once; for a long
run, those of all its segments.

Only this module needs pandas: pip install 'fencepost[frames]'. Times are seconds since the test's
start.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from fencepost.checker.facts import faults as injected
from fencepost.checker.facts import holds as found
from fencepost.checker.history import history as histories
from fencepost.report.figures import recorded
from fencepost.report.pages import matrix
from fencepost.report.stored import ReportError, Run, load

_OPS = ["index", "time_s", "process", "node", "type", "f", "error"]
_HOLDS = [
    "hold", "lock", "process", "node", "token", "start_s", "believed_end_s", "end_s", "ended_by",
]  # fmt: skip
_FAULTS = ["fault", "family", "targets", "what", "start_s", "end_s", "proved", "healed"]
_TOKENS = ["time_s", "token", "what", "lock", "hold", "process", "node", "value", "error"]
_SEGMENTS = "segments"


def read(folder: str | Path) -> Run:
    """Read the run in this folder.

    Raises:
        ReportError: the folder holds no run.
        HistoryError: the run has no readable history.
    """
    place = Path(folder)
    run = load(place)
    if not run.history.ops:
        histories.read(place / "history.jsonl").calls()  # problems with the history, if any
    return run


class Frames(NamedTuple):
    """A run's ops, holds, faults and tokens, one row each."""

    ops: pd.DataFrame
    holds: pd.DataFrame
    faults: pd.DataFrame
    tokens: pd.DataFrame


def of(run: Run) -> Frames:
    """Build the frames of one run."""
    return Frames(ops(run), holds(run), faults(run), tokens(run))


def all_of(folder: str | Path) -> Frames:
    """Read all frames of the run in a folder.

    A long run gives the rows of all its segments, with the segment's number (from 1) as the first
    column. Times count from the start of each segment.

    Raises:
        ReportError, HistoryError: as `read` does.
    """
    place = Path(folder)
    segments = sorted(one.parent for one in place.glob(f"{_SEGMENTS}/*/history.jsonl"))
    if not segments:
        if (place / _SEGMENTS).is_dir():
            raise ReportError(f"{place}: no segment of this long run has a history yet")
        return of(read(place))
    parts: list[list[pd.DataFrame]] = [[] for _ in Frames._fields]
    for segment in segments:
        for frames, frame in zip(parts, of(read(segment)), strict=True):
            frame.insert(0, "segment", int(segment.name))
            frames.append(frame)
    return Frames(*(_below(frames) for frames in parts))


def _below(frames: list[pd.DataFrame]) -> pd.DataFrame:
    # An empty frame has no column types; leave it out so that it does not change the others'.
    return pd.concat([one for one in frames if len(one)] or frames[:1], ignore_index=True)


def ops(run: Run) -> pd.DataFrame:
    """Return a row per op; each field of its value has a column, for example `value.lock`."""
    rows = [
        {
            "index": op.index,
            "time_s": op.time / 1e9,
            "process": str(op.process),
            "node": op.node,
            "type": op.type,
            "f": op.f,
            "error": " ".join(map(str, op.error)) if op.error else None,
        }
        | {f"value.{name}": value for name, value in op.value.items()}
        for op in run.history
    ]
    return pd.DataFrame(rows) if rows else pd.DataFrame(columns=_OPS)


def holds(run: Run) -> pd.DataFrame:
    """Return a row per hold: its client, lock and token, and when it began and ended.

    `believed_end_s` is when the client stopped counting on the hold, `end_s` when it gave it up.
    Both are infinite if that was never seen.
    """
    rows = [
        {
            "hold": hold.name,
            "lock": hold.lock,
            "process": hold.process,
            "node": hold.node,
            "token": hold.token,
            "start_s": hold.start / 1e9,
            "believed_end_s": hold.believed_end / 1e9,
            "end_s": hold.strict_end / 1e9,
            "ended_by": hold.ended_by,
        }
        for hold in found.holds(run.history, run.test)
    ]
    return _with_tokens(rows, _HOLDS)


def faults(run: Run) -> pd.DataFrame:
    """Return a row per fault: its family, nodes, begin and end, and whether receipts prove it.

    `end_s` is infinite if the end was never seen.
    """
    rows = [
        {
            "fault": fault.name,
            "family": fault.family,
            "targets": ", ".join(fault.targets),
            "what": fault.what,
            "start_s": fault.start / 1e9,
            "end_s": inf if fault.end is None else fault.end / 1e9,
            "proved": fault.proved,
            "healed": fault.healed,
        }
        for fault in injected.faults(run.history)
    ]
    return pd.DataFrame(rows, columns=_FAULTS)


def tokens(run: Run) -> pd.DataFrame:
    """Return a row for each grant that came with a token and each write that carried one, by time.

    `what` is `granted`, or the write's outcome: `accepted`, `refused`, or `unknown` if no answer
    came and no read showed the value. A write's time is that of its answer, or of its sending if it
    was not answered. A run without tokens gives no rows.
    """
    granted = found.holds(run.history, run.test)
    by_name = {hold.name: hold for hold in granted}
    rows: list[dict[str, Any]] = [
        {
            "time_s": hold.start / 1e9,
            "token": hold.token,
            "what": "granted",
            "lock": hold.lock,
            "hold": hold.name,
            "process": hold.process,
            "node": hold.node,
        }
        for hold in granted
        if hold.token is not None
    ]
    for write in recorded.recorded(run.history).writes:
        if write.token is not None:
            hold = by_name.get(write.hold)
            rows.append(
                {
                    "time_s": write.time / 1e9,
                    "token": write.token,
                    "what": write.state,
                    "lock": hold and hold.lock,
                    "hold": write.hold,
                    "process": hold and hold.process,
                    "node": write.node,
                    "value": write.value,
                    "error": write.error,
                }
            )
    rows.sort(key=lambda row: float(row["time_s"]))
    return _with_tokens(rows, _TOKENS)


def _with_tokens(rows: Sequence[Mapping[str, Any]], columns: list[str]) -> pd.DataFrame:
    """Build a frame whose tokens keep all their digits. Where some holds have no token, pandas
    would turn the column into floats."""
    frame = pd.DataFrame(rows, columns=columns, dtype=object).infer_objects()
    tokens = [row.get("token") for row in rows]
    whole = all(one is None or (type(one) is int and -(2**63) <= one < 2**63) for one in tokens)
    frame["token"] = pd.array(tokens, dtype="Int64" if whole else "object")
    return frame


def acquires(run: Run) -> pd.DataFrame:
    """Return a row per answered acquire: its time, its latency in ms and its result."""
    rows = [
        (call.end.time / 1e9, (call.end.time - call.begin.time) / 1e6, call.type)
        for call in run.history.calls()
        if call.begin.f == "acquire" and call.end
    ]
    return pd.DataFrame(rows, columns=["time_s", "latency_ms", "what"])


def cells(folder: str | Path) -> pd.DataFrame:
    """Return a row per cell of the matrix in this folder, with the columns of its matrix.csv.

    Raises ReportError if the folder holds no matrix.
    """
    return pd.DataFrame(matrix.flat(matrix.read(Path(folder))["cells"]))
