"""night.json, as pages and lists read it. Its fields are those of harness/campaigns/nightly.py."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import msgspec

from fencepost import plainfile
from fencepost.report.stored import ReportError
from fencepost.strictjson import decode

FILE = "night.json"

_Count = Annotated[int, msgspec.Meta(ge=0, le=2**53)]


class _Known(msgspec.Struct):
    run: str = ""


class _Entry(msgspec.Struct):
    key: str
    state: str = ""
    marks: list[str] = []
    crashed: bool = False
    said: str = ""
    run: str = ""
    holds: _Count | None = None
    known: _Known = msgspec.field(default_factory=_Known)


class _Night(msgspec.Struct):
    seed: int
    entries: list[_Entry] = []


def read(folder: Path) -> dict[str, Any]:
    """Read the entries and the seed of the nightly run in this folder, with defaults.

    Raises:
        ReportError: its file cannot be read, or fencepost did not write it.
    """
    path = folder / FILE
    try:
        found = msgspec.convert(decode(plainfile.read(path)), _Night)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise ReportError(f"{path} cannot be read: {why}") from error
    stored: dict[str, Any] = msgspec.to_builtins(found)
    return stored
