"""Tables as the page's script reads them: {"columns": [...], "rows": [[...]]}, times in µs."""

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
    """A time in whole µs; None for an end that was never seen."""
    return None if time_ns == inf else round(time_ns / 1000)


def digits(token: Any) -> str | None:
    """A token as text: a browser's numbers lose the last digits of a long one."""
    return None if token is None else str(short(token))


def short(value: Any) -> Any:
    """A value as it is, or the beginning of its text where that is long."""
    if value is None or isinstance(value, bool | float):
        return value
    if isinstance(value, int) and -_LARGE < value < _LARGE:
        return value  # of a long run there are many, and JSON would take its time for each
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    if len(text) > _LONGEST:
        return text[:_LONGEST] + "…"
    return value
