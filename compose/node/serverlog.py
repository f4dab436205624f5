"""Keeps a server's log short: its begin and its end stay, and what a breakdown has left between.

    log shorten PATH HEAD TAIL PATTERN    {"start", "end", "unkept"}, or nothing if it is short

A server that runs for a night writes more than anybody reads, and what it wrote as it broke down
may be anywhere in that. So the middle is searched before it goes: lines in which PATTERN is found,
with some that follow, are kept in a file of their own (PATH.kept), a bounded number of them.

The server has the file open and writes on, so the middle is not moved but made a hole: it takes no
more room, and every byte stays at its place. `start` and `end` say where the hole is, `unkept` how
many lines should have been kept and were not. Where a file system has no holes, the log stays long.
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
    raise OSError(f"no log {' '.join(words[:1])}: there is shorten")


def shorten(path: Path, head: int, tail: int, pattern: str) -> Cut | None:
    """Leave the middle out if it is as long as the end that stays; None if nothing is left out.

    OSError if there is no such log.
    """
    noted = path.with_name(path.name + ".cut")
    before: Cut | None = json.loads(noted.read_text()) if noted.exists() else None
    with path.open("r+b") as log:
        size = os.fstat(log.fileno()).st_size
        start = before["start"] if before else min(head, size)
        end = before["end"] if before else start
        if size - end <= 2 * tail:
            return before
        if not before:
            start = end = _line_from(log, head)
        new_end = max(end, _line_from(log, size - tail))
        wanted = re.compile(pattern.encode())
        unkept = _keep(path, _found(log, end, new_end, wanted))
        unkept += before["unkept"] if before else 0
        cut = {"start": start, "end": new_end, "unkept": unkept}
        noted.write_text(json.dumps(cut))
        ctypes.CDLL(None).fallocate(
            log.fileno(), _PUNCH_HOLE, ctypes.c_int64(end), ctypes.c_int64(new_end - end)
        )
    return cut


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
