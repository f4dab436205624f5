"""Keeps a server's log short: its begin and its end stay, and what a breakdown has left between.

    log begin PATH                        from here on it is another run's
    log shorten PATH HEAD TAIL PATTERN    {"since", "start", "end", "unkept"}, or nothing if all
                                          of it is there

A server that runs for a night writes more than anybody reads, and what it wrote as it broke down
may be anywhere in that. So the middle is searched before it goes: lines in which PATTERN is found,
with some that follow, are kept in a file of their own (PATH.kept), a bounded number of them.

The server has the file open and writes on, so the middle is not moved but made a hole: it takes no
more room, and every byte stays at its place. `since` says where this run's log begins, `start` and
`end` where the hole in it is, `unkept` how many lines should have been kept and were not. Where a
file system has no holes, the log stays long.
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
"""Bytes of kept lines at most."""
_LONGEST = 1 << 16
# Lines after one that is kept: a Java program says there why it ends.
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
    raise OSError(f"no log {' '.join(words[:1])}: there are begin and shorten")


def begin(path: Path) -> None:
    """Leave out all that is there, if there is such a log."""
    if not path.exists():
        return
    with path.open("r+b") as log:
        size = os.fstat(log.fileno()).st_size
        path.with_name(path.name + ".kept").unlink(missing_ok=True)
        _note(path, {"since": size, "start": size, "end": size, "unkept": 0})
        _make_hole(log, 0, size)


def shorten(path: Path, head: int, tail: int, pattern: str) -> Cut | None:
    """Leave the middle out if it is as long as the end that stays; None if nothing is left out.

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
    """Where the next line begins; the place itself if none does for long."""
    log.seek(place)
    line = log.readline(_LONGEST)
    return place + len(line) if line.endswith(b"\n") else place


def _found(log: BinaryIO, start: int, end: int, wanted: re.Pattern[bytes]) -> Iterator[bytes]:
    """The lines to keep of a part of the log; those after one of them may lie beyond its end."""
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
    """Append these lines to those that are kept; the number of those that there is no room for."""
    unkept = 0
    with path.with_name(path.name + ".kept").open("ab") as kept:
        for line in lines:
            if kept.tell() + len(line) > KEPT_MOST:
                unkept += 1
            else:
                kept.write(line)
    return unkept
