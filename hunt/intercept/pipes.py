"""Simulates pipes of a process, with which a thread or an event loop wakes another."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

from fencepost.hunt.intercept.context import here
from fencepost.hunt.intercept.readiness import End, found_end, pair


def _pipe() -> tuple[int, int]:
    reads, writes = pair()
    return reads.fileno(), writes.fileno()


def _of_an_end(real: Callable[..., Any], do: Callable[..., Any]) -> Callable[..., Any]:
    def chosen(number: Any, *args: Any) -> Any:
        place = here()
        end = found_end(number, place) if place is not None else None
        return real(number, *args) if end is None else do(end, *args)

    return chosen


def places() -> Iterator[tuple[Any, str, Any]]:
    """Yield each owner, the name to replace in it, and the replacement (patches.py)."""
    real = os.pipe
    yield os, "pipe", lambda: real() if here() is None else _pipe()
    verbs: dict[str, Callable[..., Any]] = {
        "read": End.recv, "write": End.send, "close": End.close, "set_blocking": End.setblocking,
        "get_blocking": End.getblocking,
    }  # fmt: skip
    for name, do in verbs.items():
        if hasattr(os, name):
            yield os, name, _of_an_end(getattr(os, name), do)
