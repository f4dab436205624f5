"""Runs as data frames, for those who go on in a notebook, a spreadsheet or a database.

    from fencepost.report import frames

    run = frames.read("results/redlock/latest")
    frames.ops(run).to_csv("ops.csv")
    frames.holds(run).to_parquet("holds.parquet")
    frames.cells("results/matrix/latest").to_parquet("matrix.parquet")

`fencepost.load("redlock").to_pandas()` has ops, holds and faults at once.

This alone needs pandas: pip install 'fencepost[frames]'. Times are seconds since the test's start.
"""

from __future__ import annotations

from math import inf
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from fencepost.checker import faults as injected
from fencepost.checker import holds as found
from fencepost.report import matrix
from fencepost.report.stored import Run, load

_FAULTS = ["fault", "family", "targets", "what", "start_s", "end_s", "proved", "healed"]


def read(folder: str | Path) -> Run:
    """A run by its folder. Raises ReportError if there is none."""
    return load(Path(folder))


class Frames(NamedTuple):
    """A run's ops, holds and faults, a row each."""

    ops: pd.DataFrame
    holds: pd.DataFrame
    faults: pd.DataFrame


def of(run: Run) -> Frames:
    """All of a run."""
    return Frames(ops(run), holds(run), faults(run))


def ops(run: Run) -> pd.DataFrame:
    """A row an op; what its value has is in columns of their own, `value.lock` say."""
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
    return pd.DataFrame(rows)


def holds(run: Run) -> pd.DataFrame:
    """A row a hold: whose, of which lock, with which token, from when, and until when.

    `believed_end_s` is where the client stopped counting on it, `end_s` where it gave it up; both
    are infinite where that was never seen.
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
    return pd.DataFrame(rows)


def faults(run: Run) -> pd.DataFrame:
    """A row a fault: which, on which nodes, from when until when, and whether receipts prove it.

    `end_s` is infinite where its end was never seen.
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


def acquires(run: Run) -> pd.DataFrame:
    """A row an acquire that was answered: when, after how many ms, and how."""
    rows = [
        (call.end.time / 1e9, (call.end.time - call.begin.time) / 1e6, call.type)
        for call in run.history.calls()
        if call.begin.f == "acquire" and call.end
    ]
    return pd.DataFrame(rows, columns=["time_s", "latency_ms", "what"])


def cells(folder: str | Path) -> pd.DataFrame:
    """A row a cell of the matrix in this folder, as its matrix.csv has it.

    Raises ReportError if there is none.
    """
    return pd.DataFrame(matrix.flat(matrix.read(Path(folder))["cells"]))
