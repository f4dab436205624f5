"""The known defects of a stored track record, each with its outcome."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from fencepost.report import campaign_files

NOT_PLAYED = "not played"
"""The outcome of a defect whose run crashed or proves nothing."""


def read(folder: Path) -> list[dict[str, Any]]:
    """Return the rows that have run, each with its `outcome` and the reason (`said`).

    Raises:
        ReportError: there is no track record in this folder.
    """
    return [
        {"outcome": NOT_PLAYED, "said": row["crashed"], "versions": {}, **row}
        if row.get("crashed")
        else row
        for row in campaign_files.read(folder, "track-record").flat
    ]


def state(row: Mapping[str, Any]) -> Literal["passed", "failure", "error"]:
    """Return the state of a test with this outcome. A row of the register on one of several
    versions has `as_expected`: a version in which it is mended does not show it."""
    if row["outcome"] == NOT_PLAYED:
        return "error"
    return "passed" if row.get("as_expected", row["outcome"] == "seen") else "failure"
