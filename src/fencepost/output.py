"""Guards standard output and standard error; all output of the command line passes through here.

A command's exit code is its verdict. Python exits with 1, which means "invalid" here, if a stream
is closed, its reader goes away (`fencepost analyze RUN | head -1`), its disk is full, or its
encoding lacks a character. Here such output is dropped, or the character replaced.

A run may come from anyone, and its names may contain the escape sequences of a terminal, which
write the clipboard or repaint the screen. Control characters become visible escapes.
"""

from __future__ import annotations

import errno
import os
import re
import sys
from typing import IO, Any, TextIO

# C0 but tab and newline, DEL, C1, and the marks that change the direction of text.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def visible(text: str) -> str:
    r"""Return the text with control characters as escapes of JSON (\u001b)."""
    return _CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def guard_output() -> None:
    """Guard both streams from now on."""
    for fd, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            _open_nowhere(fd, name)
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if not isinstance(stream, _Visible):
            setattr(sys, name, _Visible(_Lasting(stream)))


def lost(*streams: str) -> str:
    """Return why output was lost, of these streams or of both, or '' if none was. A reader that
    goes away is no reason."""
    names = streams or ("stdout", "stderr")
    return next((why for name in names if (why := _why(getattr(sys, name)))), "")


def unescaped(stream: IO[str]) -> IO[str]:
    """Return a stream for text that has only control characters of fencepost's own."""
    return getattr(stream, "lasting", stream)


def _why(stream: object) -> str:
    return stream.lasting.why if isinstance(stream, _Visible) else ""


def _open_nowhere(fd: int, name: str) -> None:
    """Occupy a closed descriptor, which a file of the run would take otherwise."""
    try:
        os.fstat(fd)
    except OSError:
        nowhere = os.open(os.devnull, os.O_RDWR)
        if nowhere != fd:
            os.dup2(nowhere, fd)
            os.close(nowhere)
    mode = "r" if name == "stdin" else "w"
    setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115


class _Lasting:
    """Drops what its stream does not take."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.why = ""
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        try:
            return self._stream.write(text)
        except (OSError, ValueError) as error:
            self._drop(error)
            return len(text)

    def flush(self) -> None:
        try:
            self._stream.flush()
        except (OSError, ValueError) as error:
            self._drop(error)

    def _drop(self, error: OSError | ValueError) -> None:
        if not isinstance(error, OSError):  # a user lock has closed it
            self.why = str(error)
            self._stream = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
            return
        if error.errno != errno.EPIPE:
            self.why = error.strerror or str(error)
        # Redirect buffered output too, so that Python's exit reports nothing.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self._stream.fileno())
        os.close(nowhere)


class _Visible:
    """Writes control characters as visible escapes."""

    def __init__(self, lasting: _Lasting) -> None:
        self.lasting = lasting

    def __getattr__(self, name: str) -> Any:
        return getattr(self.lasting, name)

    def write(self, text: str) -> int:
        self.lasting.write(visible(text))
        return len(text)

    def writelines(self, lines: list[str]) -> None:
        for line in lines:
            self.write(line)
