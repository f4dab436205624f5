"""Files that are written whole or not at all, whoever else writes them at the same time.

The content goes to a file of its own beside the target, to the disk, and takes the target's name
then. A name that two writers share would let one take away the other's half-written file.
"""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Iterable
from pathlib import Path


def replace(path: Path, content: Iterable[bytes]) -> None:
    """Replace `path` by this content: a reader sees the old file or the new one.

    Raises:
        OSError: it could not be written; the old file is as it was.
    """
    scratch = beside(path)
    try:
        with scratch.open("xb") as file:
            file.writelines(content)
            file.flush()
            os.fsync(file.fileno())
        rename(scratch, path)
    except BaseException:
        scratch.unlink(missing_ok=True)
        raise


def beside(path: Path) -> Path:
    """A name in the same folder that no other writer has."""
    return path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}")


def rename(scratch: Path, path: Path) -> None:
    """Give a file that is whole its name, for good: the folder goes to the disk as well, where the
    system can do that (Windows cannot)."""
    scratch.replace(path)
    if not hasattr(os, "O_DIRECTORY"):
        return
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    except OSError as error:
        if error.errno != errno.EINVAL:  # a file system that has no such thing
            raise
    finally:
        os.close(folder)
