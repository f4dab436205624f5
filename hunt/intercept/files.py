"""Refuses what would leave something behind for later runs, or comes from the machine's chance.

A simulated client may read files. It may not write any, change the environment, or read the
kernel's devices and tables.
"""

from __future__ import annotations

import builtins
import io
import os
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

from fencepost.hunt.intercept.context import here

_OF_THE_KERNEL = ("/dev/", "/proc/", "/sys/")
_NO_CHANGE = ("/dev/null",)
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


def _check(path: Any, writes: bool) -> None:
    place = here()
    if place is None or isinstance(path, int):
        return
    name = os.path.abspath(os.fsdecode(path))
    if name in _NO_CHANGE:
        return
    if name.startswith(_OF_THE_KERNEL):
        raise place.unknown(
            f"it opens {name}, which is not simulated: use os.urandom() for random numbers"
        )
    if writes:
        raise place.unknown(
            f"it writes the file {name}, which later runs would find: keep data in the servers"
        )


def _open(real: Callable[..., Any]) -> Callable[..., Any]:
    def open(file: Any, mode: str = "r", *args: Any, **more: Any) -> Any:
        _check(file, any(letter in mode for letter in "wxa+"))
        return real(file, mode, *args, **more)

    return open


def _os_open(path: Any, flags: int, *args: Any, **more: Any) -> int:
    _check(path, bool(flags & _WRITES))
    return _REAL_OS_OPEN(path, flags, *args, **more)


_REAL_OS_OPEN = os.open


def _environment(real: Callable[..., Any]) -> Callable[..., Any]:
    def change(*args: Any) -> Any:
        place = here()
        if place is None:
            return real(*args)
        raise place.unknown(
            f"it changes the environment variable {os.fsdecode(args[0])}, which all clients would "
            "see: pass values to the lock instead"
        )

    return change


def places() -> Iterator[tuple[Any, str, Any]]:
    """Yield each owner, the name to replace in it, and the replacement."""
    tempfile.gettempdir()  # it writes a file when it is first called, as libraries do on import
    opener = _open(io.open)
    yield builtins, "open", opener
    yield io, "open", opener
    yield os, "open", _os_open
    for name in ("putenv", "unsetenv"):
        yield os, name, _environment(getattr(os, name))
