"""Parses and formats times: 500ms, 60s, 2m; 100 ms, 10 min."""

from __future__ import annotations

import re

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "": 1.0}
_TIME = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(ms|s|m|h|)\s*")


def seconds(text: str) -> float:
    """Return a time like 500ms, 60s, 2m or 60 in seconds. ValueError unless it is a time above
    zero."""
    value = _parsed(text)
    if not value:
        raise ValueError(f"{text!r} is not a duration; write 500ms, 60s or 2m (greater than zero)")
    return value


def from_zero(text: str) -> float:
    """Return a time like 0s, 500ms, 60s or 2m in seconds. ValueError unless it is a time."""
    value = _parsed(text)
    if value is None:
        raise ValueError(f"{text!r} is not a duration; write 500ms, 60s or 2m")
    return value


def _parsed(text: str) -> float | None:
    match = _TIME.fullmatch(text)
    return float(match[1]) * _UNITS[match[2]] if match else None


def describe(time_s: float) -> str:
    """Return a time in the largest unit that gives a whole number: 100 ms, 1.5 s, 10 min, 24 h."""
    if time_s < 1:
        return f"{time_s * 1000:g} ms"
    if time_s >= 3600 and time_s % 3600 == 0:
        return f"{time_s / 3600:g} h"
    if time_s >= 60 and time_s % 60 == 0:
        return f"{time_s / 60:g} min"
    return f"{time_s:.10g} s"
