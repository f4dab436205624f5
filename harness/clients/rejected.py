"""Client output that was lost or rejected: kept next to the history, and noted in the results.

A library may print anything on the standard output of its client. That must not end a run, or make
its history unreadable: a line that is no event is rejected. A client whose connection is lost may
do more than its recorded events show. Both are in the run's folder, so that a killed run has them
as well. From the time at which an event may be missing, no violation is certain
(harness/judge/judge.py).
"""

from __future__ import annotations

import threading
from collections import Counter
from contextlib import suppress
from pathlib import Path

import msgspec

from fencepost import plainfile

NAME, _OLD_NAME = "rejected.jsonl", "set-aside.jsonl"
"""Its file in a run's folder. The old name, of version 0.1.0, is read for one version."""
_MOST = 200
"""The most lines that are kept of a client; the others are counted."""
_LONGEST, _SHOWN = 2000, 200


class Row(msgspec.Struct, omit_defaults=True):
    """One rejected line, or, at a run's end, how many more there were. `lost`: it may hide an
    event.

    `unheard`: no line, but a client whose connection was lost. `since_ns`: the time of its last
    event that was certainly received.
    """

    client: str
    why: str = ""
    line: str = ""
    length: int = 0
    lost: int = 0
    count: int = 1
    since_ns: int = 0
    unheard: bool = False


class RejectedLines:
    """Takes rejected lines during the run. Its file is created with the first one."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / NAME
        self._lock = threading.Lock()
        self._count: Counter[str] = Counter()
        self._lost: Counter[str] = Counter()

    def unheard(self, client: str, since_ns: int) -> None:
        """Record that the connection to a client was lost."""
        with self._lock:
            self._append(Row(client, lost=1, since_ns=since_ns, unheard=True))

    def add(
        self, client: str, why: str, line: bytes, length: int, lost: bool, since_ns: int
    ) -> None:
        with self._lock:
            self._count[client] += 1
            if self._count[client] > _MOST:
                self._lost[client] += lost
                return
            text = line[:_LONGEST].decode(errors="backslashreplace")
            self._append(Row(client, why, text, length, int(lost), since_ns=since_ns))

    def close(self) -> None:
        """Write how many lines were not kept."""
        with self._lock:
            for client, count in self._count.items():
                if count > _MOST:
                    self._append(Row(client, count=count - _MOST, lost=self._lost[client]))
            self._count.clear()

    def _append(self, row: Row) -> None:
        with suppress(OSError), self._path.open("ab") as file:  # no room for the history either
            file.write(msgspec.json.encode(row) + b"\n")


def complete_until(folder: Path) -> int | None:
    """Return the time from which on an event of a client may be missing, in ns; None if none is."""
    return min(
        (row.since_ns for row in _rows(_file(folder)) if row.lost and not _more(row)), default=None
    )


def _more(row: Row) -> bool:
    """Return whether it counts lines that were not kept."""
    return not (row.why or row.unheard)


def read_rejected(folder: Path) -> tuple[list[str], list[str]]:
    """Describe a run's rejected lines, a sentence per client: those that may hide events, and
    others."""
    by_client: dict[str, list[Row]] = {}
    file = _file(folder)
    for row in _rows(file):
        by_client.setdefault(row.client, []).append(row)
    lost, harmless = [], []
    for client, rows in by_client.items():
        end = next((row for row in rows if row.unheard), None)
        if end is not None:
            lost.append(
                f"lost contact with {client}: events after {end.since_ns / 1e9:.3f} s may be "
                "missing."
            )
        rows = [row for row in rows if not row.unheard]
        if not rows:
            continue
        doubtful = any(row.lost for row in rows)
        first = next((row for row in rows if row.lost and row.why), rows[0])
        count = sum(row.count for row in rows)
        lines = "a line that is no event" if count == 1 else f"{count} lines that are no events"
        what = f"{client} wrote {lines} ({first.why}): {first.line[:_SHOWN]!r}."
        if doubtful:
            lost.append(f"{what} This may have lost an event; {file.name} has the rejected lines.")
        else:
            harmless.append(what)
    return lost, harmless


def _file(folder: Path) -> Path:
    old = folder / _OLD_NAME
    return old if old.is_file() else folder / NAME


def _rows(path: Path) -> list[Row]:
    decode = msgspec.json.Decoder(Row).decode
    rows = []
    with suppress(OSError, ValueError):
        for line in plainfile.read(path).splitlines():
            with suppress(ValueError):  # the torn last line of a killed run
                rows.append(decode(line))
    return rows
