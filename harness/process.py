"""Processes: starts another module of fencepost next to the process of a run; limits memory."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

_LONGEST = 500  # characters of an error
_STATM = Path("/proc/self/statm")


@contextmanager
def memory_limited(megabytes: float | None) -> Iterator[None]:
    """Let this process, and each fork of it, grow by no more than this within the block: beyond it
    Python raises MemoryError. No limit on systems that do not show a process' size."""
    if megabytes is None or resource is None or not _STATM.exists():
        yield
        return
    before = resource.getrlimit(resource.RLIMIT_AS)
    size = int(_STATM.read_bytes().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + int(megabytes * 1_000_000), before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


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
