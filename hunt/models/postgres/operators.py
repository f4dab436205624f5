"""The operators of expressions: their types, and how they are computed."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from fencepost.hunt.models.postgres import intervals
from fencepost.hunt.models.postgres.errors import PgError
from fencepost.hunt.models.postgres.types import (
    FLOAT8,
    INT2,
    INT4,
    INT8,
    INTERVAL,
    NUMBERS,
    STAMP,
    STAMPTZ,
    UNKNOWN,
    Type,
    ranged,
)
from fencepost.hunt.models.postgres.values import Context, Typed, Value

COMPARES: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq, "<>": operator.ne, "<": operator.lt, ">": operator.gt,
    "<=": operator.le, ">=": operator.ge,
}  # fmt: skip
ARITHMETIC = {
    "+": (
        (STAMPTZ, INTERVAL, STAMPTZ), (STAMP, INTERVAL, STAMP), (INTERVAL, STAMPTZ, STAMPTZ),
        (INTERVAL, STAMP, STAMP), (INTERVAL, INTERVAL, INTERVAL),
    ),
    "-": (
        (STAMPTZ, STAMPTZ, INTERVAL), (STAMP, STAMP, INTERVAL), (STAMPTZ, INTERVAL, STAMPTZ),
        (STAMP, INTERVAL, STAMP), (INTERVAL, INTERVAL, INTERVAL),
    ),
    "*": ((INTERVAL, FLOAT8, INTERVAL), (FLOAT8, INTERVAL, INTERVAL)),
    "/": ((INTERVAL, FLOAT8, INTERVAL),),
}  # fmt: skip


def _over(one: intervals.Interval, by: float) -> intervals.Interval:
    if by == 0:
        raise PgError("22012", "division by zero")
    return intervals.times(one, 1 / by)


CALLS: dict[tuple[str, Type, Type], Callable[[Any, Any], Any]] = {
    ("*", INTERVAL, FLOAT8): intervals.times,
    ("*", FLOAT8, INTERVAL): lambda by, one: intervals.times(one, by),
    ("/", INTERVAL, FLOAT8): _over,
    ("+", INTERVAL, INTERVAL): intervals.plus,
    ("-", INTERVAL, INTERVAL): lambda one, other: intervals.plus(one, other, -1),
}
for _stamp in (STAMPTZ, STAMP):
    CALLS["+", _stamp, INTERVAL] = intervals.later
    CALLS["+", INTERVAL, _stamp] = lambda by, stamp: intervals.later(stamp, by)
    CALLS["-", _stamp, INTERVAL] = lambda stamp, by: intervals.later(stamp, by, -1)
    CALLS["-", _stamp, _stamp] = intervals.between


def fits(one: Typed, wanted: Type, other: Typed) -> bool:
    if one.type is UNKNOWN:
        return other.type is not UNKNOWN and other.type not in NUMBERS
    return one.type is wanted or (wanted is FLOAT8 and one.type in NUMBERS)


def strict(call: Callable[..., Any], *args: Value) -> Value:
    def value(c: Context) -> Any:
        given = [one(c) for one in args]
        return None if None in given else call(*given)

    return value


def compared(name: str, one: Typed, other: Typed) -> Value:
    call, left, right = COMPARES[name], one.value, other.value
    if one.type is INTERVAL:
        length = intervals.length_us
        return strict(lambda a, b: call(length(a), length(b)), left, right)

    def value(c: Context) -> Any:
        first, second = left(c), right(c)
        return None if first is None or second is None else call(first, second)

    return value


def logic(name: str, parts: list[Value]) -> Value:
    if name == "not":
        return strict(operator.not_, parts[0])
    ends = name == "or"

    def value(c: Context) -> Any:
        found: Any = not ends
        for part in parts:
            one = part(c)
            if one is ends:
                return ends
            if one is None:
                found = None
        return found

    return value


def variadic(name: str, values: list[Value]) -> Value:
    if name == "coalesce":
        return lambda c: next((v for one in values if (v := one(c)) is not None), None)
    pick = max if name == "greatest" else min

    def value(c: Context) -> Any:
        given = [v for one in values if (v := one(c)) is not None]
        return pick(given) if given else None

    return value


def number_op(name: str, target: Type) -> Callable[[Any, Any], Any]:
    whole = target in (INT2, INT4, INT8)

    def call(one: Any, other: Any) -> Any:
        if name in "/%" and other == 0:
            raise PgError("22012", "division by zero")
        match name:
            case "+":
                found = one + other
            case "-":
                found = one - other
            case "*":
                found = one * other
            case "%":
                found = abs(one) % abs(other) * (-1 if one < 0 else 1)
            case _ if whole:
                found = abs(one) // abs(other) * (-1 if (one < 0) != (other < 0) else 1)
            case _:
                found = one / other
        return ranged(found, target) if whole else found

    return call
