"""Writes the nodes' names into a host's /etc/hosts, on marked lines.

    names set [ADDRESS NAME]...   replace fencepost's lines by these
    names clear                   remove fencepost's lines

Other lines stay unchanged, byte by byte. The new file is renamed into place, so that a reader sees
the old file or the new one. If the file is a mount (in a container), it cannot be replaced and is
overwritten in place. The answer says which was done.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shutil
import tempfile

from fencepost.node.places import ETC_HOSTS

_MARK = "# fencepost"
_OURS = re.compile(rb"\S+ \S+ # fencepost")


def command(words: list[str]) -> dict[str, bool]:
    """Run one of the verbs. OSError if the file cannot be written."""
    match words:
        case ["clear"]:
            return write(ETC_HOSTS, [])
        case ["set", *given]:
            return write(ETC_HOSTS, [f"{address} {name}" for address, name in _pairs(given)])
    raise OSError(f"unknown verb names {' '.join(words)}; use set or clear")


def write(path: str, entries: list[str]) -> dict[str, bool]:
    """Write the entries. `in_place`: the file could not be replaced by another."""
    with open(path, "rb") as file:
        before = file.read()
    kept = [line for line in before.splitlines(keepends=True) if not _OURS.fullmatch(line.strip())]
    if entries and kept and not kept[-1].endswith(b"\n"):
        kept[-1] += b"\n"
    after = b"".join([*kept, *(f"{entry} {_MARK}\n".encode() for entry in entries)])
    if after == before:
        return {"changed": False, "in_place": False}
    return {"changed": True, "in_place": not _replaced(os.path.realpath(path), after)}


def _replaced(path: str, content: bytes) -> bool:
    """Rename a new file into place; False if it cannot be, and its content was replaced."""
    scratch, name = tempfile.mkstemp(prefix=".fencepost-hosts-", dir=os.path.dirname(path))
    try:
        with os.fdopen(scratch, "wb") as file:
            file.write(content)
            file.flush()
            shutil.copystat(path, name)
            os.chown(name, os.stat(path).st_uid, os.stat(path).st_gid)
            os.fsync(file.fileno())
        os.rename(name, path)
    except OSError as error:
        if error.errno != errno.EBUSY:  # a mount cannot be replaced by a rename
            raise
        _overwrite(path, content)
        return False
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name)
    return True


def _overwrite(path: str, content: bytes) -> None:
    """Overwrite in one write and truncate after it, so that a reader never sees an empty file."""
    file = os.open(path, os.O_WRONLY)
    try:
        os.pwrite(file, content, 0)
        os.ftruncate(file, len(content))
        os.fsync(file)
    finally:
        os.close(file)


def _pairs(words: list[str]) -> list[tuple[str, str]]:
    return list(zip(words[::2], words[1::2], strict=True))
