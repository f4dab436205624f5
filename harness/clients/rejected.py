"""What is missing of clients, or may be: kept beside the history, and said of the run.

A library may print what it likes on the standard output of its client. That is not to end a run,
nor to make its history unreadable: a line that is no event is set aside. A client whose connection
is lost may do more than was heard of it. Both are in the run's folder, so that a killed run has
them as well. From the time on at which an event may be missing no violation is certain
(harness/judge/judge.py).
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
    """One line, or at a run's end how many more there were. `lost`: an event may be lost by it.

    `unheard`: no line, but the client's end, of which nobody heard. `since_ns`: when the last event
    was that its client is certain to have told.
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
    """Takes lines while the run goes on. Its file is there once one has come."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / NAME
        self._lock = threading.Lock()
        self._count: Counter[str] = Counter()
        self._lost: Counter[str] = Counter()

    def unheard(self, client: str, since_ns: int) -> None:
        """Nobody heard a client to its end."""
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
        """Write how many were not kept."""
        with self._lock:
            for client, count in self._count.items():
                if count > _MOST:
                    self._append(Row(client, count=count - _MOST, lost=self._lost[client]))
            self._count.clear()

    def _append(self, row: Row) -> None:
        with suppress(OSError), self._path.open("ab") as file:  # no room for the history either
            file.write(msgspec.json.encode(row) + b"\n")


def complete_until(folder: Path) -> int | None:
    """The time from which on an event of a client may be missing, in ns; None if none is."""
    return min(
        (row.since_ns for row in _rows(folder / NAME) if row.lost and not _more(row)), default=None
    )


def _more(row: Row) -> bool:
    """Whether it counts others, which came later than those that are here."""
    return not (row.why or row.unheard)


def read_rejected(folder: Path) -> tuple[list[str], list[str]]:
    """Sentences about what a run set aside, one a client: where events may be lost, and others."""
    by_client: dict[str, list[Row]] = {}
    for row in _rows(folder / NAME):
        by_client.setdefault(row.client, []).append(row)
    lost, harmless = [], []
    for client, rows in by_client.items():
        end = next((row for row in rows if row.unheard), None)
        if end is not None:
            lost.append(
                f"{client} was not heard to its end: what it did after {end.since_ns / 1e9:.3f} s "
                "may be missing."
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
