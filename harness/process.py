"""Starts another module of fencepost in a process of its own, next to the process of a run."""

from __future__ import annotations

import os
import subprocess
import sys

_LONGEST = 500  # characters of an error


def begin(module: str, *words: str, out: int) -> subprocess.Popen[bytes]:
    """Start `python -m module words`, with pipes to its standard input and standard error.

    It gets no Ctrl-C: that ends the run, which then ends this process.
    """
    return subprocess.Popen(
        [sys.executable, "-m", module, *words],
        stdin=subprocess.PIPE,
        stdout=out,
        stderr=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        start_new_session=True,
    )


def why(stderr: bytes, code: int) -> str:
    """Return why a process ended: the end of its standard error, or else its exit code."""
    return stderr.decode(errors="replace").strip()[-_LONGEST:] or f"exit code {code}"
