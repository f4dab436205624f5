"""Files of results that are kept with the code: docs/track-record.json, docs/defects.json."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fencepost import plainfile
from fencepost.harness.errors import BadArguments
from fencepost.harness.results import results
from fencepost.strictjson import decode


def read(path: Path, key: str, what: str = "rows", table: str = "") -> list[dict[str, Any]]:
    """Return the rows of a kept file, each with the text `key` and the object `table`, if one is
    named; nothing if the file does not exist.

    Raises:
        BadArguments: the file has another format.
    """

    def is_row(row: Any) -> bool:
        if not isinstance(row, dict) or not isinstance(row.get(key), str):
            return False
        return not table or isinstance(row.get(table), dict)

    try:
        rows = decode(plainfile.read(path))
        if not isinstance(rows, list) or not all(map(is_row, rows)):
            raise ValueError(f"it is not a list of {what}")
    except FileNotFoundError:
        return []
    except (OSError, ValueError) as error:
        raise BadArguments(f"{path} cannot be added to ({error}): name another file") from error
    return rows


def write(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    """Write the rows. Raise BadArguments if the file cannot be written."""
    try:
        results.write(path, rows)
    except OSError as error:
        raise BadArguments(f"{path} cannot be written: {error.strerror}") from error


def must_be_kept(path: Path, key: str, what: str = "rows", table: str = "") -> None:
    """Raise BadArguments, before anything runs, if rows cannot be written to this file."""
    read(path, key, what, table)
    if not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
        raise BadArguments(f"--keep {path}: its folder does not exist or is not writable")
