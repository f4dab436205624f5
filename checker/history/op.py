"""An op, one event of a history; and a call, an op from its invocation to its completion.

Both are msgspec's structs and not dataclasses: a history has millions, and these are made in a
tenth of the time, most of them by the decoder itself (decoding.py). They take no part in garbage
collection, since neither can be in a cycle.
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
"""What a client's library says on its own: the hold is over; its lease runs on."""

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
    # A type that no JSON has: the decoder cannot take a field of a line for it.
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
    """An op from its invocation to its completion; `end` is None where none was recorded."""

    begin: Op
    end: Op | None

    @property
    def type(self) -> Type:
        """ok, fail or info; an op that never completed is info: it may have happened."""
        return self.end.type if self.end is not None else "info"

    @property
    def value(self) -> dict[str, Any]:
        """What was asked, overlaid with what was answered."""
        return self.begin.value | (self.end.value if self.end is not None else {})

    def get(self, name: str) -> Any:
        """One field of `value`; None where it is missing."""
        if self.end is not None and name in self.end.value:
            return self.end.value[name]
        return self.begin.value.get(name)
