"""Store the figures of a sweep, a matrix or suites, for the tables that `make docs` writes.

    python tools/keep.py results/sweep/latest redlock-ttl-pause
    python tools/keep.py results/suite-redis/*Z results/suite-rates/*Z suites

The first writes docs/measured/redlock-ttl-pause.json: the plan, the versions and the sum of each
cell. The second writes docs/measured/suites.json: the expectation and results of each entry of
these suites, a line each. Entries that these folders do not have stay. The runs are not changed.
"""

from __future__ import annotations

import json
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

from fencepost.report.campaign_files import kind
from fencepost.report.pages import matrix, suite, sweep
from fencepost.report.stored import ReportError

MEASURED = Path(__file__).parent.parent / "docs" / "measured"
_CELL = ("lock", "fault", "guard", "x", "y", "x_shown", "y_shown", "reason")
_SUM = ("state", "marks", "runs", "crashed", "holds", "violations", "availability")
_ENTRY = (
    "scenario", "guard", "claim", "versions", "expected", "observed", "as_expected", "why", "rate",
    "cost",
)  # fmt: skip


def kept(folder: Path) -> dict[str, Any]:
    """Return the figures of the sweep or the matrix in this folder. Raises ReportError if it is
    neither."""
    found = sweep.read(folder) if kind(folder) == "sweep" else matrix.read(folder)
    return {
        "date": _date(folder),
        "plan": found["plan"],
        "versions": found.get("versions") or {},
        "cells": [
            {name: row[name] for name in _CELL if name in row}
            | {"sum": {name: row["sum"][name] for name in _SUM}}
            for row in found["cells"]
        ],
    }


def kept_suite(folder: Path) -> list[dict[str, Any]]:
    """Return the figures of each entry of the suite in this folder.

    Raises ReportError if it is not a suite, or one of its runs is missing.
    """
    try:
        rows = suite.read(folder)
        return [
            {"suite": folder.resolve().parent.name.removeprefix("suite-"), "date": _date(folder)}
            | {"seeds": _seeds(folder, row)}
            | {name: row[name] for name in _ENTRY if row.get(name) not in (None, "", {})}
            for row in rows
        ]
    except (OSError, ValueError) as error:
        raise ReportError(f"{folder}: not kept, because it cannot be read ({error})") from error


def _seeds(folder: Path, row: dict[str, Any]) -> list[int]:
    """Return the seeds of an entry's runs; none for costs, which draw no random choices."""
    if "rate" in row:
        return sorted(run["seed"] for run in row["rate"]["runs"])
    if "cost" in row:
        return []
    return [json.loads((folder / row["run"] / "test.json").read_text("utf-8"))["seed"]]


def _date(folder: Path) -> str:
    began = datetime.strptime(folder.resolve().name, "%Y%m%dT%H%M%S.%fZ")
    return began.date().isoformat()


def _text(folders: list[Path], before: Path) -> str:
    if all(kind(folder) == "suite" for folder in folders):
        new = [row for folder in folders for row in kept_suite(folder)]
        played = set(map(_entry, new))
        found = json.loads(before.read_text("utf-8")) if before.exists() else []
        rows = [row for row in found if _entry(row) not in played] + new
        return "[\n" + ",\n".join(map(json.dumps, rows)) + "\n]"
    if len(folders) > 1:
        raise ReportError(
            "only suites can be stored together; name the folder of one sweep or matrix"
        )
    return json.dumps(kept(folders[0]), indent=1)


def _entry(row: dict[str, Any]) -> tuple[str, ...]:
    return row["suite"], row["scenario"], row["guard"]


def main(arguments: list[str]) -> int:
    if len(arguments) < 2:
        print(__doc__, file=sys.stderr)
        return 254
    *folders, name = arguments
    path = MEASURED / f"{name}.json"
    try:
        text = _text([Path(folder) for folder in folders], path)
    except ReportError as error:
        print(error, file=sys.stderr)
        return 254
    path.parent.mkdir(exist_ok=True)
    path.write_text(text + "\n", encoding="utf-8")
    print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
