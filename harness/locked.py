"""Locks files and folders (flock), so that other processes see which runs are in progress.

A recorder locks its history, a long run its folder of segments. The process that executes a run, a
suite, a matrix or a campaign locks its folder until the verdict and the page are written.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

try:
    import fcntl
except ImportError:  # Windows, where only hunts run: no two processes write the same files
    fcntl = None  # type: ignore[assignment]


def lock(file: int | IO[bytes]) -> None:
    """Hold the lock of an open file until it is closed."""
    with suppress(OSError):  # a file system without locks: runs in progress are not recognized
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
    """Return whether a process holds the lock of this file or folder."""
    try:
        # It may be a pipe, which would wait for its writer.
        opened = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    except OSError:
        return False  # no such file; its reader reports that
    try:
        if fcntl is None:
            return False
        fcntl.flock(opened, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False  # the file system has no locks
    finally:
        os.close(opened)
    return False
