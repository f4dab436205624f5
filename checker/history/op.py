"""An op, one event of a history; and a call, an op from its invocation to its completion.

Both are msgspec structs rather than dataclasses: a history has millions, and structs take a tenth
of the time to make, most of them in the decoder itself (decoding.py). They are excluded from
garbage collection, because neither can be in a cycle.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Any, Literal

from msgspec import Struct

Type = Literal["invoke", "ok", "fail", "info"]
TYPES: tuple[Type, ...] = ("invoke", "ok", "fail", "info")
NEMESIS = "nemesis"
LOCK_OPS = ("acquire", "extend", "release")
SPONTANEOUS = ("lost", "renewed")
"""Ops that a client's library reports unasked: a hold was lost; a lease was renewed."""

NOTHING_MORE: MappingProxyType[str, Any] = MappingProxyType({})


class Op(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """One event of the history.

    `time` is in ns since the test's start; `process` an int or "nemesis"; `error` is
    [kind, text] on fail and info. `extra` keeps fields this version does not know.
    """

    index: int
    time: int
    process: int | str
    type: Type
    f: str
    value: dict[str, Any]
    error: list[Any] | None = None
    node: str | None = None
    # A type that JSON cannot express, so the decoder never fills it from a line's field.
    extra: MappingProxyType[str, Any] = NOTHING_MORE

    def to_json(self) -> dict[str, Any]:
        row: dict[str, Any] = {
            "index": self.index,
            "time": self.time,
            "process": self.process,
            "type": self.type,
            "f": self.f,
            "value": self.value,
        }
        if self.error is not None:
            row["error"] = self.error
        if self.node is not None:
            row["node"] = self.node
        return {**row, **self.extra}


class Call(Struct, frozen=True, gc=False):
    """An op from its invocation to its completion; `end` is None if none was recorded."""

    begin: Op
    end: Op | None

    @property
    def type(self) -> Type:
        """Return ok, fail or info; an op that never completed is info, because it may have
        happened."""
        return self.end.type if self.end is not None else "info"

    @property
    def value(self) -> dict[str, Any]:
        """Return the invocation's value, overlaid with the completion's."""
        return self.begin.value | (self.end.value if self.end is not None else {})

    def get(self, name: str) -> Any:
        """Return one field of `value`, or None if it is missing."""
        if self.end is not None and name in self.end.value:
            return self.end.value[name]
        return self.begin.value.get(name)
