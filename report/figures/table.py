"""Tables for the page's script: {"columns": [...], "rows": [[...]]}, times in µs."""

from __future__ import annotations

import json
from collections.abc import Iterable
from math import inf
from typing import Any

_LONGEST = 200
_LARGE = 1 << 63


def table(columns: Iterable[str], rows: Iterable[Iterable[Any]]) -> dict[str, Any]:
    return {"columns": list(columns), "rows": [list(row) for row in rows]}


def us(time_ns: float) -> int | None:
    """Return a time in whole µs, or None for an end that was never seen."""
    return None if time_ns == inf else round(time_ns / 1000)


def digits(token: Any) -> str | None:
    """Return a token as text, because a browser's numbers lose digits of a long one."""
    return None if token is None else str(short(token))


def short(value: Any) -> Any:
    """Return a value as it is, or the begin of its text if that is long."""
    if value is None or isinstance(value, bool | float):
        return value
    if isinstance(value, int) and -_LARGE < value < _LARGE:
        return value  # a long run has many, and encoding each as JSON would be slow
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    if len(text) > _LONGEST:
        return text[:_LONGEST] + "…"
    return value
