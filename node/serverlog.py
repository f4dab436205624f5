"""Shortens a server's log: its begin and end stay, and lines about a crash in between.

    log begin PATH                        from here on it belongs to a new run
    log shorten PATH HEAD TAIL PATTERN    {"since", "start", "end", "unkept"}, or nothing if the
                                          log is complete

A server writes more in a long run than can be kept, and its lines about a crash may be anywhere in
it. So the middle is searched before it is dropped: lines that match PATTERN, with some that follow,
go to a separate file (PATH.kept), a bounded number of them.

The server keeps the file open and writes on, so the middle is not moved but replaced by a hole: it
takes no space, and every byte keeps its position. `since` is where this run's log begins, `start`
and `end` are the bounds of the hole, `unkept` is the number of matching lines beyond the bound. If
a file system does not support holes, the log stays long.
"""

from __future__ import annotations

import ctypes
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

KEPT_MOST = 1 << 20
"""Largest size of the kept lines in bytes."""
_LONGEST = 1 << 16
# Lines kept after a match: a Java program writes there why it exits.
_AFTER = 5
# FALLOC_FL_KEEP_SIZE and FALLOC_FL_PUNCH_HOLE, of linux/falloc.h.
_PUNCH_HOLE = 1 | 2

Cut = dict[str, int]


def command(words: list[str]) -> Cut | None:
    match words:
        case ["shorten", path, head, tail, pattern]:
            return shorten(Path(path), int(head), int(tail), pattern)
        case ["begin", path]:
            begin(Path(path))
            return None
    raise OSError(f"unknown verb log {' '.join(words[:1])}; use begin or shorten")


def begin(path: Path) -> None:
    """Skip the existing content, if there is such a log."""
    if not path.exists():
        return
    with path.open("r+b") as log:
        size = os.fstat(log.fileno()).st_size
        path.with_name(path.name + ".kept").unlink(missing_ok=True)
        _note(path, {"since": size, "start": size, "end": size, "unkept": 0})
        _make_hole(log, 0, size)


def shorten(path: Path, head: int, tail: int, pattern: str) -> Cut | None:
    """Drop the middle if it is as long as the end that stays; None if nothing is dropped.

    OSError if there is no such log.
    """
    before = _noted(path)
    with path.open("r+b") as log:
        size = os.fstat(log.fileno()).st_size
        since = before["since"] if before else 0
        start, end = (before["start"], before["end"]) if before else (since, since)
        whole = end == since
        if whole:
            start = end = min(since + head, size)
        if size - end <= 2 * tail:
            return before
        if whole:
            start = end = _line_from(log, since + head)
        new_end = max(end, _line_from(log, size - tail))
        wanted = re.compile(pattern.encode())
        unkept = _keep(path, _found(log, end, new_end, wanted))
        unkept += before["unkept"] if before else 0
        cut = {"since": since, "start": start, "end": new_end, "unkept": unkept}
        _note(path, cut)
        _make_hole(log, end, new_end)
    return cut


def _noted(path: Path) -> Cut | None:
    place = path.with_name(path.name + ".cut")
    found: Cut | None = json.loads(place.read_text()) if place.exists() else None
    return found


def _note(path: Path, cut: Cut) -> None:
    path.with_name(path.name + ".cut").write_text(json.dumps(cut))


def _make_hole(log: BinaryIO, start: int, end: int) -> None:
    ctypes.CDLL(None).fallocate(
        log.fileno(), _PUNCH_HOLE, ctypes.c_int64(start), ctypes.c_int64(end - start)
    )


def _line_from(log: BinaryIO, place: int) -> int:
    """Return where the next line begins; the position itself if none does for long."""
    log.seek(place)
    line = log.readline(_LONGEST)
    return place + len(line) if line.endswith(b"\n") else place


def _found(log: BinaryIO, start: int, end: int, wanted: re.Pattern[bytes]) -> Iterator[bytes]:
    """Yield the lines of a part of the log to keep; those after a match may lie beyond its end."""
    log.seek(start)
    place, after = start, 0
    while place < end or after:
        line = log.readline(_LONGEST)
        if not line:
            return
        if place < end and wanted.search(line):
            after = _AFTER + 1
        if after:
            after -= 1
            yield line
        place += len(line)


def _keep(path: Path, lines: Iterator[bytes]) -> int:
    """Append these lines to the kept ones; return the number of those beyond the bound."""
    unkept = 0
    with path.with_name(path.name + ".kept").open("ab") as kept:
        for line in lines:
            if kept.tell() + len(line) > KEPT_MOST:
                unkept += 1
            else:
                kept.write(line)
    return unkept
