"""Finds the line of a lock's own code that runs or has failed."""

from __future__ import annotations

import traceback
from pathlib import Path
from types import FrameType

_HUNT = str(Path(__file__).parents[1])


def where_in(error: BaseException) -> str:
    """Return the last line of the lock's own code in a traceback."""
    frames = traceback.extract_tb(error.__traceback__)
    theirs = [frame for frame in frames if not frame.filename.startswith(_HUNT)]
    last = (theirs or frames)[-1]
    return f"{last.filename}:{last.lineno}: {last.line}" if last.line else last.filename


def where_now(folder: str, frame: FrameType | None = None) -> str:
    """Return the line of the lock's own code that is running: in its folder, or "" for a library's
    lock, of the library. `frame`: the frame that runs, by default the caller's."""
    stack = ((one.f_code.co_filename, line) for one, line in traceback.walk_stack(frame))
    theirs = [(name, line) for name, line in stack if not name.startswith(_HUNT)]
    own = [(name, line) for name, line in theirs if folder and name.startswith(folder)]
    return next((f" ({name}:{line})" for name, line in own or theirs), "")
