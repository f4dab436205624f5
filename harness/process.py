"""A process of fencepost's own beside the one that carries out a run: another module of it."""

from __future__ import annotations

import os
import subprocess
import sys

_LONGEST = 500  # characters of what went wrong


def begin(module: str, *words: str, out: int) -> subprocess.Popen[bytes]:
    """Start `python -m module words`, with pipes for what it is told and for what goes wrong.

    A Ctrl-C is not for it: it ends the run, and this process with it or after it.
    """
    return subprocess.Popen(
        [sys.executable, "-m", module, *words],
        stdin=subprocess.PIPE,
        stdout=out,
        stderr=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        start_new_session=True,
    )


def why(said: bytes, code: int) -> str:
    """Why it has ended: the end of what it wrote to standard error, or else its exit code."""
    return said.decode(errors="replace").strip()[-_LONGEST:] or f"exit code {code}"
