"""Lines of clients that are no events: kept beside the history, and said of the run.

A library may print what it likes on the standard output of its client. That is not to end a run,
nor to make its history unreadable. What is set aside is in the run's folder, so that a killed run
has it as well; and because it may have been an event, the verdict tells.
"""

from __future__ import annotations

import threading
from collections import Counter
from contextlib import suppress
from pathlib import Path

import msgspec

NAME = "set-aside.jsonl"
_MOST = 200
"""Lines that are kept of a client at most; the others are counted."""
_LONGEST, _SHOWN = 2000, 200


class Row(msgspec.Struct, omit_defaults=True):
    """One line, or at a run's end how many more there were. `lost`: an event may be lost by it."""

    client: str
    why: str = ""
    line: str = ""
    length: int = 0
    lost: int = 0
    count: int = 1


class Aside:
    """Takes lines while the run goes on. Its file is there once one has come."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / NAME
        self._lock = threading.Lock()
        self._count: Counter[str] = Counter()
        self._lost: Counter[str] = Counter()

    def add(self, client: str, why: str, line: bytes, length: int, lost: bool) -> None:
        with self._lock:
            self._count[client] += 1
            if self._count[client] > _MOST:
                self._lost[client] += lost
                return
            text = line[:_LONGEST].decode(errors="backslashreplace")
            self._append(Row(client, why, text, length, int(lost)))

    def close(self) -> None:
        """Write how many were not kept."""
        with self._lock:
            for client, count in self._count.items():
                if count > _MOST:
                    self._append(Row(client, count=count - _MOST, lost=self._lost[client]))
            self._count.clear()

    def _append(self, row: Row) -> None:
        with suppress(OSError), self._path.open("ab") as file:  # no room for the history either
            file.write(msgspec.json.encode(row) + b"\n")


def said(folder: Path) -> tuple[list[str], list[str]]:
    """Sentences about what a run set aside, one a client: where events may be lost, and others."""
    by_client: dict[str, list[Row]] = {}
    for row in _rows(folder / NAME):
        by_client.setdefault(row.client, []).append(row)
    lost, harmless = [], []
    for client, rows in by_client.items():
        doubtful = any(row.lost for row in rows)
        first = next((row for row in rows if row.lost and row.why), rows[0])
        count = sum(row.count for row in rows)
        lines = "a line that is no event" if count == 1 else f"{count} lines that are no events"
        what = f"{client} wrote {lines} ({first.why}): {first.line[:_SHOWN]!r}."
        if doubtful:
            lost.append(f"{what} An event may be lost by that; {NAME} has what was set aside.")
        else:
            harmless.append(what)
    return lost, harmless


def _rows(path: Path) -> list[Row]:
    decode = msgspec.json.Decoder(Row).decode
    rows = []
    with suppress(OSError):
        for line in path.read_bytes().splitlines():
            with suppress(ValueError):  # the torn last one of a killed run
                rows.append(decode(line))
    return rows
