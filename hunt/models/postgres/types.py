"""Types of values: their input and output, as text and as bytes, and which casts are implicit.

A value is an int, float, Decimal, str or bool; a timestamp is an int (microseconds since 1970), an
interval a tuple (months, days, microseconds). None is NULL.
"""

from __future__ import annotations

import datetime
import re
import struct
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

from fencepost.hunt.models.postgres.errors import PgError
from fencepost.hunt.models.postgres.intervals import interval_in, interval_out

_EPOCH_2000_US = 946_684_800_000_000
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_TRUE, _FALSE = ("true", "yes", "on", "1"), ("false", "no", "off", "0")


@dataclass(frozen=True)
class Type:
    """A type: its name in errors, number, size in bytes (-1: varies), and text form."""

    name: str
    oid: int
    size: int
    read: Callable[[str], Any]
    show: Callable[[Any], str] = str


def _invalid(name: str, given: str) -> PgError:
    return PgError("22P02", f'invalid input syntax for type {name}: "{given}"')


def _integer(name: str, size: int) -> Type:
    limit = 1 << (8 * size - 1)

    def read(given: str) -> int:
        if not re.fullmatch(r"\s*[+-]?[0-9]+\s*", given):
            raise _invalid(name, given)
        number = int(given)
        if not -limit <= number < limit:
            raise PgError("22003", f'value "{given}" is out of range for type {name}')
        return number

    oid = {2: 21, 4: 23, 8: 20}[size]
    return Type(name, oid, size, read)


def _bool_in(given: str) -> bool:
    word = given.strip().lower()
    if word and word != "o":
        for words, value in ((_TRUE, True), (_FALSE, False)):
            if any(one.startswith(word) for one in words):
                return value
    raise _invalid("boolean", given)


def _float_in(given: str) -> float:
    try:
        return float(given)
    except ValueError:
        raise _invalid("double precision", given) from None


def _float_out(value: float) -> str:
    if value != value or value in (float("inf"), float("-inf")):
        return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[repr(value)]
    shown = repr(value).removesuffix(".0")
    return shown.replace("e-0", "e-0").replace("e", "e") if "e" in shown else shown


def _numeric_in(given: str) -> Decimal:
    try:
        return Decimal(given.strip())
    except InvalidOperation:
        raise _invalid("numeric", given) from None


def _timestamp_in(name: str) -> Callable[[str], int]:
    def read(given: str) -> int:
        try:
            when = datetime.datetime.fromisoformat(given.strip())
        except ValueError:
            raise PgError("22007", f'invalid input syntax for type {name}: "{given}"') from None
        if when.tzinfo is None or name == "timestamp":
            when = when.replace(tzinfo=datetime.UTC)
        return (when - _EPOCH) // datetime.timedelta(microseconds=1)

    return read


def _timestamp_out(zone: str) -> Callable[[int], str]:
    def show(value: int) -> str:
        when = _EPOCH + datetime.timedelta(microseconds=value)
        fraction = f".{when.microsecond:06d}".rstrip("0") if when.microsecond else ""
        return f"{when:%Y-%m-%d %H:%M:%S}{fraction}{zone}"

    return show


BOOL = Type("boolean", 16, 1, _bool_in, lambda value: "t" if value else "f")
INT2, INT4, INT8 = _integer("smallint", 2), _integer("integer", 4), _integer("bigint", 8)
NUMERIC = Type("numeric", 1700, -1, _numeric_in, lambda value: f"{value:f}")
FLOAT8 = Type("double precision", 701, 8, _float_in, _float_out)
TEXT = Type("text", 25, -1, str)
VARCHAR = Type("character varying", 1043, -1, str)
NAME = Type("name", 19, 64, str)
STAMP = Type("timestamp without time zone", 1114, 8, _timestamp_in("timestamp"), _timestamp_out(""))
STAMPTZ = Type(
    "timestamp with time zone", 1184, 8,
    _timestamp_in("timestamp with time zone"), _timestamp_out("+00"),
)  # fmt: skip
INTERVAL = Type("interval", 1186, 16, interval_in, interval_out)
VOID = Type("void", 2278, 4, lambda given: "", lambda value: "")
UNKNOWN = Type("unknown", 705, -2, str)

BY_OID = {
    one.oid: one
    for one in (
        BOOL, INT2, INT4, INT8, NUMERIC, FLOAT8, TEXT, VARCHAR, NAME, STAMP, STAMPTZ, INTERVAL, VOID
    )
}  # fmt: skip
BY_NAME = {
    "bool": BOOL, "boolean": BOOL, "smallint": INT2, "int2": INT2, "int": INT4, "integer": INT4,
    "int4": INT4, "bigint": INT8, "int8": INT8, "numeric": NUMERIC, "decimal": NUMERIC,
    "double precision": FLOAT8, "float8": FLOAT8, "float": FLOAT8, "text": TEXT,
    "varchar": VARCHAR, "character varying": VARCHAR, "name": NAME,
    "timestamp": STAMP, "timestamp without time zone": STAMP,
    "timestamptz": STAMPTZ, "timestamp with time zone": STAMPTZ, "interval": INTERVAL,
}  # fmt: skip
NUMBERS = (INT2, INT4, INT8, NUMERIC, FLOAT8)
"""From the narrowest to the widest: a cast to a later one is implicit."""
STRINGS = (TEXT, VARCHAR, NAME)


def implicit(source: Type, target: Type) -> bool:
    """Whether a value is cast without being asked."""
    if source is target:
        return True
    if source in NUMBERS and target in NUMBERS:
        return NUMBERS.index(source) < NUMBERS.index(target)
    if source in STRINGS and target in (TEXT, VARCHAR):
        return True
    return source is STAMP and target is STAMPTZ


def assignable(source: Type, target: Type) -> bool:
    """Whether a value is cast when it is stored in a column."""
    if implicit(source, target) or (source in NUMBERS and target in NUMBERS):
        return True
    if target in STRINGS:
        return True
    return source is STAMPTZ and target is STAMP


def castable(source: Type, target: Type) -> bool:
    """Whether `value::type` exists."""
    if assignable(source, target) or source in STRINGS:
        return True
    return {source, target} == {BOOL, INT4}


def cast(value: Any, source: Type, target: Type) -> Any:
    """Return a value in another type; the cast exists."""
    if value is None or source is target:
        return value
    if target in NUMBERS and source in NUMBERS:
        return _number(value, target)
    if target in STRINGS:
        if source is BOOL:
            return "true" if value else "false"
        return source.show(value)
    if source in STRINGS:
        return target.read(value)
    if source is BOOL:
        return int(value)
    if target is BOOL:
        return bool(value)
    return value


def _number(value: Any, target: Type) -> Any:
    if target is FLOAT8:
        return float(value)
    if target is NUMERIC:
        return Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    if isinstance(value, Decimal):
        value = int(value.quantize(Decimal(1), rounding="ROUND_HALF_UP"))
    return ranged(round(value), target)


def ranged(value: int, target: Type) -> int:
    limit = 1 << (8 * target.size - 1)
    if not -limit <= value < limit:
        raise PgError("22003", f"{target.name} out of range")
    return value


# Bytes.

_PACKED = {INT2: "!h", INT4: "!i", INT8: "!q", FLOAT8: "!d", BOOL: "!?"}


def to_bytes(value: Any, type: Type, binary: bool) -> bytes | None:
    """Return a value as it is sent to a client. KeyError: the model has no binary form of it."""
    if value is None:
        return None
    if not binary or type in STRINGS or type is UNKNOWN or type is VOID:
        return type.show(value).encode()
    if type in (STAMP, STAMPTZ):
        return struct.pack("!q", value - _EPOCH_2000_US)
    if type is INTERVAL:
        return struct.pack("!qii", value[2], value[1], value[0])
    return struct.pack(_PACKED[type], value)


def from_bytes(data: bytes | None, type: Type, binary: bool) -> Any:
    """Return a client's parameter. KeyError: the model has no binary form of it."""
    if data is None:
        return None
    if not binary or type in STRINGS:
        return type.read(data.decode())
    if type in (STAMP, STAMPTZ):
        return int(struct.unpack("!q", data)[0]) + _EPOCH_2000_US
    if type is INTERVAL:
        us, days, months = struct.unpack("!qii", data)
        return months, days, us
    return struct.unpack(_PACKED[type], data)[0]
