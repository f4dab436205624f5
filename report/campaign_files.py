"""The files of a campaign: its arguments, and a line for each item that has finished.

    campaign.json   {"schema": 2, "kind": "matrix", "plan": {...}, "rows": [{"key": KEY, ...}, ...]}
    campaign.jsonl  {"row": KEY, "number": 1, "seed": 7, "run": "../../TEST/TIME", ...}

A campaign is a table. A row is a cell, a scenario, a defect, a seed or a lock, and never changes. A
line is one run of a row: `run` is its folder, relative to the campaign's, and `crashed` is the
reason if there is no run. Lines are only appended, each in one write, so a killed campaign keeps
everything that had finished. A last line without its end is ignored.

Files of earlier versions are read as the same table (older_files.py).
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from fencepost import plainfile
from fencepost.atomic_write import replace
from fencepost.report import older_files
from fencepost.report.campaign_types import must_be_a_line, must_be_typed
from fencepost.report.stored import ReportError
from fencepost.strictjson import decode

SCHEMA = 2
ASKED, LINES = "campaign.json", "campaign.jsonl"
Row = dict[str, Any]


@dataclass(frozen=True)
class Stored:
    """A campaign as its files have it. Each of `rows` has its lines under `runs`, in the order in
    which they finished. `versions`: those that were tested, by lock, or under "" if all rows have
    one lock. `older`: the file, if an earlier version wrote it."""

    kind: str
    plan: Mapping[str, Any]
    rows: list[Row]
    versions: dict[str, dict[str, str]] = field(default_factory=dict)
    older: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return the content of campaign.json: all but the lines."""
        rows = [{name: row[name] for name in row if name != "runs"} for row in self.rows]
        found = {"schema": SCHEMA, "kind": self.kind, "plan": self.plan, "rows": rows}
        return found | ({"versions": self.versions} if self.versions else {})

    @property
    def lines(self) -> list[Row]:
        return [line for row in self.rows for line in row["runs"]]

    @property
    def flat(self) -> list[Row]:
        """Each row that has run, merged with its last line."""
        return [
            {**{name: row[name] for name in row if name != "runs"}, **row["runs"][-1]}
            for row in self.rows
            if row["runs"]
        ]


class _Kind(msgspec.Struct):
    kind: str = ""


def kind(folder: Path) -> str:
    """Return the kind of the campaign in this folder, or '' if there is no campaign."""
    return _named(folder) or older_files.kind(folder)


def _named(folder: Path) -> str:
    """Return the kind that campaign.json names, which it does from version 2 on."""
    with suppress(OSError, ValueError, RecursionError):
        return msgspec.json.decode(plainfile.read(folder / ASKED), type=_Kind).kind
    return ""


def read(folder: Path, kind: str) -> Stored:
    """Read the campaign of this kind in the folder.

    Raises:
        ReportError: there is no such campaign, or its files are malformed.
    """
    table: older_files.Table
    named, older = _named(folder), older_files.FILES[kind]
    path = folder / (ASKED if named or not plainfile.exists(folder / older) else older)
    try:
        if named not in ("", kind):
            raise ValueError(f"it is of a {named}")
        if named:
            table = _read(decode(plainfile.read(path)), folder)
        else:
            table = older_files.read(folder, kind)
        must_be_typed(*table)
        return Stored(kind, *table, "" if named else older)
    except (OSError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError) as error:
        raise ReportError(
            f"{path} cannot be read ({error}): name the folder of a {kind}, such as "
            f"results/{kind}/latest"
        ) from error


def _read(asked: Mapping[str, Any], folder: Path) -> older_files.Table:
    if asked["schema"] != SCHEMA:
        raise ValueError(f"its version is {asked['schema']}, and this fencepost knows {SCHEMA}")
    rows: dict[str, Row] = {row["key"]: {**row, "runs": []} for row in asked["rows"]}
    versions: dict[str, dict[str, str]] = dict(asked.get("versions") or {})
    for line in lines(folder / LINES):
        must_be_a_line(line)
        row = rows[line["row"]]
        row["runs"].append(line)
        if line.get("versions"):
            versions[str(row.get("lock", ""))] = line["versions"]
    return asked["plan"], list(rows.values()), versions


def lines(path: Path) -> list[Row]:
    """Return the lines of a file, without an unfinished last one. Raise ValueError if one is not
    JSON."""
    content = plainfile.read(path) if path.exists() else b""
    return [decode(line) for line in content.split(b"\n")[:-1]]


def write(folder: Path, stored: Stored) -> None:
    """Write a campaign with the lines that it has."""
    replace(folder / LINES, [_line(line) for line in stored.lines])
    replace(folder / ASKED, [json.dumps(stored.to_json(), indent=1).encode(), b"\n"])


def append(folder: Path, line: Row) -> None:
    """Append a line in one write. Raise OSError if the disk is full; the file is as before then."""
    content = _line(line)
    file = os.open(folder / LINES, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
    try:
        if (written := os.write(file, content)) < len(content):
            os.ftruncate(file, os.fstat(file).st_size - written)
            raise OSError(28, "no space is left for a line", str(folder / LINES))
    finally:
        os.close(file)


def must_be_plain(folder: Path) -> None:
    """Raise ReportError if a file of the campaign is a symbolic link, or no regular file: lines
    appended to it would go into another file."""
    for path in (folder / ASKED, folder / LINES):
        if path.is_symlink() or (path.exists() and not path.is_file()):
            raise ReportError(
                f"{path} is a symbolic link or no regular file, so that lines would be written "
                "elsewhere: check who made it, and replace it by a copy of the file"
            )


def mend(folder: Path) -> None:
    """Cut off an unfinished last line, before others are appended."""
    path = folder / LINES
    if path.exists():
        content = plainfile.read(path)
        os.truncate(path, content.rfind(b"\n") + 1)


def _line(line: Row) -> bytes:
    return json.dumps(line, separators=(",", ":")).encode() + b"\n"
