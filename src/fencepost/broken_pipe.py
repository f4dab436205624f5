"""Handles output to a reader that goes away, as in `fencepost analyze RUN | head -1`.

A command's exit code is its verdict. On a broken pipe Python exits with 1, which means "invalid"
here, or with 120 if it notices only at exit.
"""

from __future__ import annotations

import os
import sys
from typing import Any, TextIO


def outlive_readers() -> None:
    """Drop output to a pipe without a reader from now on."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is not None and not isinstance(stream, _Output):
            setattr(sys, name, _Output(stream))


class _Output:
    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        try:
            return self._stream.write(text)
        except BrokenPipeError:
            self._drop()
            return len(text)

    def flush(self) -> None:
        try:
            self._stream.flush()
        except BrokenPipeError:
            self._drop()

    def _drop(self) -> None:
        # Redirect buffered output too, so that Python's exit reports nothing.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self._stream.fileno())
        os.close(nowhere)
