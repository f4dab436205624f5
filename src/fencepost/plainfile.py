"""Opens files of others: regular files only, and of a bounded size.

A folder of results may come from anyone. A pipe in place of a file would keep its reader waiting
for ever, and a device has no end.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO

MOST = 128 << 20
"""Largest file in bytes that is read at once. A day with four families has some 60,000 faults, and
results of up to 80 MB."""


def opened(path: Path) -> BinaryIO:
    """Open a file for reading.

    Raises:
        OSError: it cannot be opened, or it is not a regular file.
    """
    found = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    if not stat.S_ISREG(os.fstat(found).st_mode):
        os.close(found)
        raise OSError(errno.EINVAL, "it is not a regular file", str(path))
    return os.fdopen(found, "rb")


def read(path: Path) -> bytes:
    """Return the content of a file.

    Raises:
        OSError: it cannot be read, or it is not a regular file.
        ValueError: it is larger than `MOST`.
    """
    with opened(path) as file:
        # A growing file may exceed the size that it has now.
        if os.fstat(file.fileno()).st_size > MOST or len(content := file.read(MOST + 1)) > MOST:
            raise ValueError(f"it is larger than {MOST >> 20} MB")
    return content


def exists(path: Path) -> bool:
    """Return whether this is a regular file; False for one that cannot be looked at."""
    try:
        return path.is_file()
    except OSError:
        return False
