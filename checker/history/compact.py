"""Compact storage of decoded values: a history has millions of similar ones.

Texts and numbers that the ops of one hold repeat (its name, its token) are stored once, and dicts
with the same fields in the same order share one table of keys, as the attributes of a class'
instances do (PEP 412). This takes a third of the memory.
"""

from __future__ import annotations

from typing import Any

# A history from elsewhere may have any number of fields and texts, so the caches are bounded.
_MOST_SHAPES = 1_000
_MOST_SHARED = 1 << 16
_LONGEST = 256  # characters; longer texts are hardly ever repeated

_shapes: dict[tuple[str, ...], type] = {}
_texts: dict[str, str] = {}
_numbers: dict[int, int] = {}


def value(decoded: dict[str, Any]) -> dict[str, Any]:
    """Return an equal dict in less memory, which may share texts and numbers with earlier ones."""
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
    """Return an empty dict that shares its table of keys with all dicts with these names."""
    shape = _shapes.get(names)
    if shape is None:
        if len(_shapes) >= _MOST_SHAPES:
            return {}
        shape = _shapes[names] = type("Value", (), {})
    fresh: dict[str, Any] = shape().__dict__
    return fresh
