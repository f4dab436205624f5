"""Intervals: (months, days, microseconds), their arithmetic and their text."""

from __future__ import annotations

import re
from fractions import Fraction

from fencepost.hunt.models.postgres.errors import PgError

Interval = tuple[int, int, int]

_SECOND = 1_000_000
_DAY = 86_400 * _SECOND
_UNITS: dict[str, Interval] = {
    "microsecond": (0, 0, 1), "us": (0, 0, 1),
    "millisecond": (0, 0, 1000), "ms": (0, 0, 1000), "msec": (0, 0, 1000),
    "second": (0, 0, _SECOND), "sec": (0, 0, _SECOND), "s": (0, 0, _SECOND),
    "minute": (0, 0, 60 * _SECOND), "min": (0, 0, 60 * _SECOND), "m": (0, 0, 60 * _SECOND),
    "hour": (0, 0, 3600 * _SECOND), "h": (0, 0, 3600 * _SECOND), "hr": (0, 0, 3600 * _SECOND),
    "day": (0, 1, 0), "d": (0, 1, 0), "week": (0, 7, 0), "w": (0, 7, 0),
    "month": (1, 0, 0), "mon": (1, 0, 0), "year": (12, 0, 0), "y": (12, 0, 0),
}  # fmt: skip
_PART = re.compile(
    r"\s*(?:([+-]?)(\d+):(\d\d)(?::(\d\d(?:\.\d+)?))?|([+-]?\d*\.?\d+(?:[eE][+-]?\d+)?)\s*([a-zA-Z]*))"
)


def interval_in(given: str) -> Interval:
    """Return the interval of a text such as '1 day 00:00:02.5' or '1500 ms'."""
    invalid = PgError("22007", f'invalid input syntax for type interval: "{given}"')
    months = days = us = 0
    rest = given.strip()
    if not rest:
        raise invalid
    while rest:
        found = _PART.match(rest)
        if found is None:
            raise invalid
        rest = rest[found.end() :].strip()
        sign, hours, minutes, seconds, number, word = found.groups()
        if hours is not None:
            part = (int(hours) * 3600 + int(minutes) * 60) * _SECOND
            part += round(Fraction(seconds or "0") * _SECOND)
            us += -part if sign == "-" else part
            continue
        unit = word.lower()
        unit = unit if unit in _UNITS else unit.removesuffix("s")
        unit = unit or "second"
        if unit not in _UNITS:
            raise invalid
        more = times(_UNITS[unit], Fraction(number))
        months, days, us = months + more[0], days + more[1], us + more[2]
    return months, days, us


def interval_out(value: Interval) -> str:
    """Return the text of an interval, in the style `postgres`."""
    months, days, us = value
    years, months = int(months / 12), months - 12 * int(months / 12)
    parts = []
    for number, word in ((years, "year"), (months, "mon"), (days, "day")):
        if number:
            parts.append(f"{number} {word}{'' if number == 1 else 's'}")
    if us or not parts:
        rest = abs(us)
        sign = "-" if us < 0 else "+" if parts and parts[-1].startswith("-") else ""
        fraction = f".{rest % _SECOND:06d}".rstrip("0") if rest % _SECOND else ""
        seconds = rest // _SECOND
        parts.append(f"{sign}{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
                     f"{fraction}")  # fmt: skip
    return " ".join(parts)


def length_us(value: Interval) -> int:
    """Return the length by which intervals are compared: a month has 30 days."""
    return (value[0] * 30 + value[1]) * _DAY + value[2]


def plus(one: Interval, other: Interval, sign: int = 1) -> Interval:
    return one[0] + sign * other[0], one[1] + sign * other[1], one[2] + sign * other[2]


def times(one: Interval, by: float | Fraction) -> Interval:
    """Multiply an interval; parts of a month become days, and parts of a day become time."""
    factor = Fraction(by)
    months = one[0] * factor
    whole_months = int(months)
    days = one[1] * factor + (months - whole_months) * 30
    whole_days = int(days)
    us = one[2] * factor + (days - whole_days) * _DAY
    return whole_months, whole_days, round(us)


def later(stamp: int, by: Interval, sign: int = 1) -> int:
    """Return a timestamp plus an interval without months."""
    if by[0]:
        raise PgError("0A000", "months are not modelled")
    return stamp + sign * (by[1] * _DAY + by[2])


def between(one: int, other: int) -> Interval:
    """Return the interval from one timestamp to another: days and time."""
    us = one - other
    days = int(us / _DAY)
    return 0, days, us - days * _DAY
