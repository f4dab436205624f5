"""Atomic writes: a file is written completely or not at all, despite concurrent writers.

The content goes to a temporary file next to the target, is synced, and is renamed to the target.
Each writer's temporary name is unique, so that none takes another's half-written file.
"""

from __future__ import annotations

import ctypes
import errno
import os
import secrets
import shutil
import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from glob import escape
from pathlib import Path

_LEFT_S = 3600.0
# Of fcntl.h and stdio.h.
_AT_FDCWD, _RENAME_EXCHANGE = -100, 2


def replace(path: Path, content: Iterable[bytes]) -> None:
    """Replace `path` by this content: a reader sees the old file or the new one.

    Raises:
        OSError: it could not be written; the old file is unchanged.
    """
    scratch = beside(path)
    try:
        with scratch.open("xb") as file:
            file.writelines(content)
            file.flush()
            os.fsync(file.fileno())
        rename(scratch, path)
    except OSError as error:
        # The name of the temporary file tells a user nothing.
        error.filename, error.filename2 = str(path), None
        raise
    finally:
        with suppress(OSError):
            scratch.unlink(missing_ok=True)


def beside(path: Path) -> Path:
    """Return a name in the same folder that no other writer uses. Files and folders that a killed
    writer left there are removed once they are an hour old."""
    for left in path.parent.glob(f".{escape(path.name)}.*-*"):
        with suppress(OSError):  # another writer may be removing it
            if time.time() - left.lstat().st_mtime > _LEFT_S:
                shutil.rmtree(left) if left.is_dir() and not left.is_symlink() else left.unlink()
    return path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}")


def rename(scratch: Path, path: Path) -> None:
    """Rename a complete file durably: the folder is synced as well, if the system can do that
    (Windows cannot)."""
    scratch.replace(path)
    if not hasattr(os, "O_DIRECTORY"):
        return
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    except OSError as error:
        if error.errno != errno.EINVAL:  # a file system that cannot sync a folder
            raise
    finally:
        os.close(folder)


def exchange(one: Path, other: Path) -> bool:
    """Let two files or folders change places in one step, so that neither name is ever free. Return
    False, with nothing changed, where that is impossible (renameat2 is Linux's)."""
    call = getattr(ctypes.CDLL(None), "renameat2", None) if sys.platform == "linux" else None
    if call is None:
        return False
    names = os.fsencode(one), os.fsencode(other)
    return bool(call(_AT_FDCWD, names[0], _AT_FDCWD, names[1], _RENAME_EXCHANGE) == 0)
