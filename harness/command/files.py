"""The optional files about a run outside its folder: JUnit XML, a summary in Markdown, a badge.

A regular file is written, and so are /dev/null and standard output under its own name
(/dev/stdout). Anything else is refused before the run: a pipe without a reader would keep the run
waiting for ever, and a device such as /dev/full takes nothing.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from fencepost.harness.errors import BadArguments, Crashed

_STDOUT = 1
_NO_WAITING = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)
_WRITE = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0) | _NO_WAITING

Content = Callable[[], bytes]


@dataclass(frozen=True)
class Files:
    """Where to write each file; None: not written."""

    junit: Path | None = None
    summary: Path | None = None
    badge: Path | None = None

    def must_be_writable(self) -> None:
        """Raise BadArguments if one cannot be written. Call before the run, which may be long."""
        for option, file in vars(self).items():
            if file is None:
                continue
            try:
                file.parent.mkdir(parents=True, exist_ok=True)
                _opened(file).close()
            except (OSError, ValueError) as error:
                raise BadArguments(_cannot(option, file, error)) from error

    def write(self, **contents: Content) -> None:
        """Write the contents whose options were given; each has the name of its option. A
        summary is appended. If one cannot be written, the others still are.

        Raises:
            Crashed: one could not be written; the text names each.
        """
        lost = []
        for option, content in contents.items():
            file: Path | None = getattr(self, option)
            if file is None:
                continue
            made = content()
            try:
                _put(file, made, append=option == "summary")
            except (OSError, ValueError) as error:
                lost.append(_cannot(option, file, error))
        if lost:
            raise Crashed("; ".join(lost))

    def write_after(self, error: BaseException | None, **contents: Content) -> None:
        """Write like `write`, at the end of a command that ended with this error or with none. What
        could not be written is then only printed, because the error decides the exit code."""
        try:
            self.write(**contents)
        except Crashed as lost:
            if error is None:
                raise
            print(f"fencepost: {lost}", file=sys.stderr)


def _cannot(option: str, file: Path, error: OSError | ValueError) -> str:
    why = error.strerror if isinstance(error, OSError) else str(error)
    return f"--{option}: {file} cannot be written: {why}"


def _put(file: Path, content: bytes, append: bool) -> None:
    with _opened(file) as out:
        found = os.fstat(out.fileno())
        if not append and stat.S_ISREG(found.st_mode) and not _is_stdout(found):
            out.truncate(0)
        out.write(content)


def _opened(file: Path) -> BinaryIO:
    """Open a file to append to it. Raise OSError if it is of a type that is not written."""
    if file.exists():
        _must_be_written(file, file.stat())  # opening a device may change its state
    number = os.open(file, _WRITE, 0o666)
    try:
        found = os.fstat(number)
        _must_be_written(file, found)
        if _is_stdout(found):
            # The same open file, so that printed lines are not overwritten.
            sys.stdout.flush()
            os.dup2(_STDOUT, number)
        return os.fdopen(number, "ab")
    except BaseException:
        os.close(number)
        raise


def _must_be_written(file: Path, found: os.stat_result) -> None:
    mode = found.st_mode
    if stat.S_ISREG(mode) or stat.S_ISDIR(mode) or _is_stdout(found):
        return  # the system refuses to open a folder
    if stat.S_ISCHR(mode) and found.st_rdev == os.stat(os.devnull).st_rdev:
        return
    raise OSError(
        errno.EINVAL, "it is not a regular file; /dev/null and /dev/stdout are accepted", str(file)
    )


def _is_stdout(found: os.stat_result) -> bool:
    try:
        return os.path.samestat(found, os.fstat(_STDOUT))
    except OSError:  # it is closed
        return False
