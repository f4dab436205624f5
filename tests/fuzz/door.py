"""A reader of files, and how the fuzzer calls it."""

from __future__ import annotations

import contextlib
import io
import sys
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random

from fencepost.harness import __main__ as command_line

FINE = (0, 2)
# The exit code 1 says INVALID, or of `compare` that the runs differ; no other command may use it.
JUDGES = ("analyze", "explain", "compare", "lincheck")
BAD = 254
REFUSED: deque[str] = deque(maxlen=5)
"""The latest errors about files. A door that refuses its sound file tests nothing."""

Answer = str
"""The error in how a door answered; "" if there is none."""
Shape = Callable[[str, Random], str]


@dataclass(frozen=True)
class Door:
    """One reader.

    `sound` is a file that it accepts; `shape` corrupts its text as JSON, if it is JSON; `hand`
    passes it a corrupt one, in an empty current folder.
    """

    name: str
    sound: bytes
    shape: Shape | None
    hand: Callable[[bytes], Answer]


def command(*words: str, also: tuple[int, ...] = ()) -> Answer:
    """Return the error in how `fencepost WORDS` ends. `also`: further exit codes to accept."""
    out, err = io.StringIO(), io.StringIO()
    argv, sys.argv = sys.argv, ["fencepost", *words]
    code: object = 0
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            command_line.main()
    except SystemExit as error:
        code = error.code
    finally:
        sys.argv = argv
    said = err.getvalue()
    fine = (*FINE, 1) if words[0] in JUDGES else FINE
    if code not in (*fine, BAD, *also) or "Traceback" in said:
        return f"exit code {code}: {said[-2000:]}"
    if code == BAD and not said.strip():
        return "bad input, and no word of why"
    if code == BAD:
        REFUSED.append(f"{' '.join(words)}: {said.strip()}")
    return ""


def function(read: Callable[[Path], object], error: type[Exception], content: bytes) -> Answer:
    path = Path("file")
    path.write_bytes(content)
    try:
        read(path)
    except error as told:
        REFUSED.append(str(told))
        return "" if str(told).strip() else "an error without a word"
    return ""
