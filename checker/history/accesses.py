"""The reads and writes of each resource.

Several checkers use them, each more than once, so they are collected once per history.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from msgspec import Struct

from fencepost.checker.history.history import Call, History
from fencepost.checker.history.op import Type
from fencepost.checker.lincheck.model import frozen

Key = Hashable
"""A key that equal values share. 1 and 1.0 are equal, and so are two objects with the same fields
in any order; true is not 1."""


class Access(Struct, frozen=True, gc=False):
    """A read or a write. `key` is that of the value in its answer, or in its invocation if the
    answer has none; `asked` that of its invocation. `version`: the one that was read, or that a
    write was given (`stored`)."""

    call: Call
    is_read: bool
    type: Type
    key: Key
    asked: Key
    version: int | None


def accesses(history: History) -> list[tuple[Any, list[Access]]]:
    """Return each resource with its reads and writes, in order of invocation."""

    def found() -> list[tuple[Any, list[Access]]]:
        rows: dict[Any, list[Access]] = {}
        for call in history.calls():
            f = call.begin.f
            if f in ("read", "write"):
                rows.setdefault(call.begin.value.get("resource"), []).append(_access(call, f))
        return list(rows.items())

    return history.once("accesses", found)


def _access(call: Call, f: str) -> Access:
    is_read = f == "read"
    about = "version" if is_read else "stored"
    value, end = call.begin.value, call.end
    asked = key(value.get("value"))
    if end is None:
        return Access(call, is_read, "info", asked, asked, None)
    answer = end.value
    answered = key(answer["value"]) if "value" in answer else asked
    return Access(call, is_read, end.type, answered, asked, number(answer.get(about)))


def number(value: Any) -> int | None:
    """Return a version or token as a number, or None."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def key(value: Any) -> Key:
    """Return the Key of a value."""
    found: Key = frozen(value)
    return found
