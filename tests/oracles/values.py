"""Values of a resource that are equal as JSON, and in how many ways clients write them."""

from __future__ import annotations

from fractions import Fraction
from random import Random
from typing import Any

from msgspec.structs import replace

from fencepost.checker.history.history import Op

WRITINGS: tuple[tuple[Any, ...], ...] = (
    (1, 1.0),
    (True,),
    ("1",),
    ([1], [1.0]),
    ([True],),
    ({"a": 1, "b": [2]}, {"b": [2.0], "a": 1}),
    ({"a": 1, "b": [True]},),
)
"""Values, each with all its writings here. No two of the values are equal."""


def rewritten(random: Random, ops: list[Op]) -> list[Op]:
    """Replace each value of a resource by one of the above, now in this writing, now in that."""
    kinds: dict[Any, tuple[Any, ...]] = {}
    found = []
    for op in ops:
        told = op.value.get("value")
        if told is not None and op.f in ("read", "write"):
            kind = kinds.setdefault(told, WRITINGS[len(kinds) % len(WRITINGS)])
            value = random.choice(kind) if op.f == "read" else kind[0]
            op = replace(op, value=op.value | {"value": value})
        found.append(op)
    return found


def plain(ops: list[Op]) -> list[Op]:
    """Replace each value of a resource by a text that it shares with its equals alone."""
    return [
        replace(op, value=op.value | {"value": _text(op.value["value"])})
        if op.f in ("read", "write") and op.value.get("value") is not None
        else op
        for op in ops
    ]


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return f"{{{sorted((name, _text(item)) for name, item in value.items())}}}"
    if isinstance(value, list):
        return f"[{[_text(item) for item in value]}]"
    if isinstance(value, str):
        return f"text {value}"
    if isinstance(value, int | float) and not isinstance(value, bool):
        return f"number {Fraction(value)}"
    return f"{type(value)} {value}"
