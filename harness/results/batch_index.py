"""What stands for many runs in the results folder: suites, matrices, sweeps, track records,
campaigns of hunts, benches, nights.

Each has a folder as a run has, with campaign.json (report/campaign_files.py) or night.json in place
of test.json. The runs themselves lie in folders next to it, and stay where it is removed.
"""

from __future__ import annotations

from pathlib import Path

from fencepost.harness.errors import BadArguments
from fencepost.report.exports import batches
from fencepost.report.exports.batches import Collected as Collected
from fencepost.report.exports.batches import kind as kind
from fencepost.report.stored import ReportError

KINDS = ("run", "hunt", *batches.KINDS)
"""Everything that the results folder has, by name."""


def read(folder: Path) -> Collected | None:
    """What is in this folder; None where it is none of these.

    Raises:
        BadArguments: its files cannot be read, or are not what fencepost writes.
    """
    if not kind(folder):
        return None
    try:
        return batches.read(folder)
    except ReportError as error:
        raise BadArguments(str(error)) from error
    except OSError as error:
        raise BadArguments(f"{folder} cannot be read: {error.strerror}") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BadArguments(f"the files of {folder} cannot be used: {error}") from error
