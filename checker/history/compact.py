"""Decoded values in little memory: a history has millions, much alike.

What the ops of one hold say again and again (its name, its token) is kept once, and dicts with the
same fields in the same order share one table of keys, as the attributes of a class' instances do
(PEP 412). It takes a third of the memory.
"""

from __future__ import annotations

from typing import Any

# A history that is not ours may have any number of fields and texts: what is shared is bounded.
_MOST_SHAPES = 1_000
_MOST_SHARED = 1 << 16
_LONGEST = 256  # characters; what is longer is hardly said twice

_shapes: dict[tuple[str, ...], type] = {}
_texts: dict[str, str] = {}
_numbers: dict[int, int] = {}


def value(decoded: dict[str, Any]) -> dict[str, Any]:
    """An equal dict in less memory, whose texts and numbers may be those of earlier ones."""
    found = _empty(tuple(decoded))
    for name, what in decoded.items():
        kind = type(what)
        if kind is str:
            if len(what) <= _LONGEST:
                what = _texts.setdefault(what, what)
        elif kind is int:
            what = _numbers.setdefault(what, what)
        found[name] = what
    if len(_texts) > _MOST_SHARED:
        _texts.clear()
    if len(_numbers) > _MOST_SHARED:
        _numbers.clear()
    return found


def _empty(names: tuple[str, ...]) -> dict[str, Any]:
    """An empty dict whose table of keys is that of all dicts with these names."""
    shape = _shapes.get(names)
    if shape is None:
        if len(_shapes) >= _MOST_SHAPES:
            return {}
        shape = _shapes[names] = type("Value", (), {})
    fresh: dict[str, Any] = shape().__dict__
    return fresh
