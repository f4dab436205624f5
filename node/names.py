"""The nodes' names in a host's /etc/hosts, on lines that are known again.

    names set [ADDRESS NAME]...   ours are these, in the place of earlier ones
    names clear                   no line is ours

Lines of others stay as they are, byte by byte. The file is written beside and renamed, so that a
program that looks a name up meets the old one or the new one. Where it is a mount of its own (in a
container) it cannot be replaced by another, and is written in place. The answer says which it was.
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
    """Carry out one of the verbs. OSError if the file cannot be written."""
    match words:
        case ["clear"]:
            return write(ETC_HOSTS, [])
        case ["set", *given]:
            return write(ETC_HOSTS, [f"{address} {name}" for address, name in _pairs(given)])
    raise OSError(f"no names {' '.join(words)}: there are set and clear")


def write(path: str, entries: list[str]) -> dict[str, bool]:
    """Let the entries be ours. `in_place`: the file could not be replaced by another."""
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
    """Put another file in its place; False if that cannot be, and its content was replaced."""
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
        if error.errno != errno.EBUSY:  # a mount is not renamed over
            raise
        _overwrite(path, content)
        return False
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name)
    return True


def _overwrite(path: str, content: bytes) -> None:
    """In one write, and cut off after it: nobody meets an empty file."""
    file = os.open(path, os.O_WRONLY)
    try:
        os.pwrite(file, content, 0)
        os.ftruncate(file, len(content))
        os.fsync(file)
    finally:
        os.close(file)


def _pairs(words: list[str]) -> list[tuple[str, str]]:
    return list(zip(words[::2], words[1::2], strict=True))
