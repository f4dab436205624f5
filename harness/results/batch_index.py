"""Index of multi-run folders: suites, matrices, sweeps, track records, hunt campaigns, benches,
nightly runs.

Each has a folder like a run, with campaign.json (report/campaign_files.py) or night.json instead of
test.json. Its runs are in folders next to it, and stay when it is removed.
"""

from __future__ import annotations

from pathlib import Path

from fencepost.harness.errors import BadArguments
from fencepost.report.exports import batches
from fencepost.report.exports.batches import Collected as Collected
from fencepost.report.exports.batches import kind as kind
from fencepost.report.pages.page import usable
from fencepost.report.stored import ReportError

KINDS = ("run", "hunt", *batches.KINDS)
"""The kinds of folders in the results folder."""


def read(folder: Path) -> Collected | None:
    """Read a multi-run folder; None if it is another kind of folder.

    Raises:
        BadArguments: its files cannot be read, or fencepost did not write them. Any other error is
            a defect of fencepost.
    """
    found = kind(folder)
    if not found:
        return None
    try:
        with usable(folder, found):
            return batches.read(folder)
    except ReportError as error:
        raise BadArguments(str(error)) from error
    except OSError as error:
        raise BadArguments(f"{folder} cannot be read: {error.strerror}") from error
