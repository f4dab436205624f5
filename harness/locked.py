"""Whether a run goes on: its recorder holds a lock (flock) on its history, a long run on its
folder of segments. Whoever carries out a run, a suite, a matrix or a campaign holds one on its
folder, until it is judged and its page is written."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

try:
    import fcntl
except ImportError:  # Windows, where only hunts are run: nobody else writes what they write
    fcntl = None  # type: ignore[assignment]


def lock(file: int | IO[bytes]) -> None:
    """Hold the lock of an open file until it is closed."""
    with suppress(OSError):  # a file system without locks, where nobody can tell
        if fcntl is not None:
            fcntl.flock(file, fcntl.LOCK_EX)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock of a file or folder within the block."""
    held = os.open(path, os.O_RDONLY)
    try:
        lock(held)
        yield
    finally:
        os.close(held)


def is_live(path: Path) -> bool:
    """Whether anybody holds the lock of this file or folder."""
    try:
        asked = os.open(path, os.O_RDONLY)
    except OSError:
        return False  # there is none; who reads it will say
    try:
        if fcntl is None:
            return False
        fcntl.flock(asked, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False  # no locks here
    finally:
        os.close(asked)
    return False
