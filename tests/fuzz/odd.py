"""Results folders with a file of an odd type, or with odd names."""

from __future__ import annotations

import contextlib
import os
import socket
import stat
from collections.abc import Callable
from pathlib import Path
from random import Random

FILES = (
    "test.json", "history.jsonl", "results.json", "run.json", "report.html", "schedule.json",
    "suite.json", "campaign.json", "campaign.jsonl", "night.json", "history.jsonl.gz",
)  # fmt: skip
NAMES = (b"\xff\xfe", b"a\nb", b"\x1b[31mred", "\u202etxt".encode(), b"[bold]x[/bold]", b"-rf",
         b"n" * 255, b" ", b"latest", b"%2e%2e", b"'\"<script>")  # fmt: skip

HUGE = 8 << 30


def _socket(path: Path) -> None:
    one = socket.socket(socket.AF_UNIX)
    with contextlib.chdir(path.parent):  # the path of a socket has at most 107 bytes
        one.bind(path.name)
    one.close()


def _huge(path: Path) -> None:
    path.write_bytes(b"[")
    os.truncate(path, HUGE)


ODD: dict[str, Callable[[Path], object]] = {
    "a FIFO": os.mkfifo,
    "a folder": Path.mkdir,
    "a socket": _socket,
    "a link to itself": lambda path: path.symlink_to(path.name),
    "a link to /dev/zero": lambda path: path.symlink_to("/dev/zero"),
    "a link to nothing": lambda path: path.symlink_to("nothing"),
    "8 GB of nothing": _huge,
    "an empty file": Path.touch,
    "a device": lambda path: os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(1, 5)),
}


def folder(results: Path, random: Random) -> Path:
    """Make the folder of a run, RESULTS/TEST/TIME, often with an odd TEST or TIME; return it."""
    odd = [os.fsdecode(name) for name in random.sample(NAMES, 2)]
    test = odd[0] if random.random() < 0.5 else "test"
    time = odd[1] if random.random() < 0.2 else "20260101T000000.000001Z"
    place = results / test / time
    place.mkdir(parents=True)
    return place


def spoil(place: Path, random: Random) -> None:
    """Replace one or two files of the folder by something odd."""
    for name in random.sample(FILES, random.choice((1, 1, 2))):
        path = place / name
        path.unlink(missing_ok=True)
        make = random.choice([one for one in ODD if one != "a device" or os.geteuid() == 0])
        ODD[make](path)
