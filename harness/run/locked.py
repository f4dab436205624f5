"""Whether a run goes on: its recorder holds a lock (flock) on its history, a long run on its
folder of segments."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock of a file or folder within the block."""
    held = os.open(path, os.O_RDONLY)
    try:
        with suppress(OSError):  # a file system without locks, where nobody can tell
            fcntl.flock(held, fcntl.LOCK_EX)
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
        fcntl.flock(asked, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False  # no locks here
    finally:
        os.close(asked)
    return False
