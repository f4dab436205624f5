"""The functions of SQL that the model has: their argument types, result type and meaning."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from hashlib import md5
from typing import Any

from fencepost.hunt.models.postgres import intervals
from fencepost.hunt.models.postgres.hashing import hashtext, hashtextextended
from fencepost.hunt.models.postgres.types import (
    BOOL,
    FLOAT8,
    INT4,
    INT8,
    INTERVAL,
    NAME,
    NUMERIC,
    STAMP,
    STAMPTZ,
    TEXT,
    VOID,
    Type,
)

VERSION = (
    "PostgreSQL 15.18 (Debian 15.18-0+deb12u1) on x86_64-pc-linux-gnu, compiled by gcc "
    "(Debian 12.2.0-14+deb12u1) 12.2.0, 64-bit"
)


@dataclass(frozen=True)
class Function:
    """`call` gets the session and the arguments. `waits`: it returns a generator, because it may
    wait; such a call must be a column of a SELECT."""

    args: tuple[Type, ...]
    returns: Type
    call: Callable[..., Any]
    waits: bool = False
    strict: bool = True


def _advisory() -> dict[str, list[Function]]:
    found: dict[str, list[Function]] = {}
    for args in ((INT8,), (INT4, INT4)):
        for shared in (False, True):
            mode, ending = (5, "_shared") if shared else (7, "")
            for xact in (False, True):
                word = "xact_lock" if xact else "lock"

                def lock(session: Any, *key: int, m: int = mode, x: bool = xact) -> Any:
                    return session.advisory_lock(key, m, x)

                def attempt(session: Any, *key: int, m: int = mode, x: bool = xact) -> bool:
                    return bool(session.try_advisory_lock(key, m, x))

                made = found.setdefault(f"pg_advisory_{word}{ending}", [])
                made.append(Function(args, VOID, lock, waits=True))
                made = found.setdefault(f"pg_try_advisory_{word}{ending}", [])
                made.append(Function(args, BOOL, attempt))

            def unlock(session: Any, *key: int, m: int = mode) -> bool:
                return bool(session.advisory_unlock(key, m))

            made = found.setdefault(f"pg_advisory_unlock{ending}", [])
            made.append(Function(args, BOOL, unlock))
    return found


def _date_part(session: Any, value: Any) -> Decimal:
    us = value if isinstance(value, int) else _epoch_us(value)
    return Decimal(us).scaleb(-6).quantize(Decimal("0.000001"))


def _epoch_us(value: intervals.Interval) -> int:
    months, days, us = value
    years = int(months / 12)
    return (int(years * 365.25 * 86400) + (months - 12 * years) * 30 * 86400 + days * 86400) * (
        10**6
    ) + us


def _make_interval(unit: str) -> Callable[..., Any]:
    def made(session: Any, number: float) -> intervals.Interval:
        return intervals.times(intervals.interval_in(f"1 {unit}"), number)

    return made


def _setting(session: Any, name: str) -> str:
    return str(session.settings.show(name))


def _set_config(session: Any, name: str, value: str, local: bool) -> str:
    session.configure(name, value, local)
    return str(session.settings.show(name))


def _absolute(session: Any, value: Any) -> Any:
    return abs(value)


FUNCTIONS: dict[str, list[Function]] = {
    **_advisory(),
    "pg_advisory_unlock_all": [Function((), VOID, lambda s: s.advisory_unlock_all())],
    "now": [Function((), STAMPTZ, lambda s: s.begun_us)],
    "transaction_timestamp": [Function((), STAMPTZ, lambda s: s.begun_us)],
    "localtimestamp": [Function((), STAMP, lambda s: s.begun_us)],
    "statement_timestamp": [Function((), STAMPTZ, lambda s: s.statement_us)],
    "clock_timestamp": [Function((), STAMPTZ, lambda s: s.clock_us())],
    "pg_sleep": [Function((FLOAT8,), VOID, lambda s, by: s.sleeps(by), waits=True)],
    "extract": [
        Function((STAMPTZ,), NUMERIC, _date_part), Function((INTERVAL,), NUMERIC, _date_part),
    ],
    "to_timestamp": [Function((FLOAT8,), STAMPTZ, lambda s, by: round(by * 1e6))],
    "make_interval secs": [Function((FLOAT8,), INTERVAL, _make_interval("second"))],
    "make_interval mins": [Function((INT4,), INTERVAL, _make_interval("minute"))],
    "hashtext": [Function((TEXT,), INT4, lambda s, words: hashtext(words))],
    "hashtextextended": [
        Function((TEXT, INT8), INT8, lambda s, words, seed: hashtextextended(words, seed))
    ],
    "md5": [Function((TEXT,), TEXT, lambda s, words: md5(words.encode()).hexdigest())],
    "pg_backend_pid": [Function((), INT4, lambda s: s.pid)],
    "pg_cancel_backend": [Function((INT4,), BOOL, lambda s, pid: s.server.cancel_pid(s, pid))],
    "pg_terminate_backend": [
        Function((INT4,), BOOL, lambda s, pid: s.server.terminate_pid(s, pid))
    ],
    "pg_is_in_recovery": [Function((), BOOL, lambda s: False)],
    "current_user": [Function((), NAME, lambda s: s.user)],
    "current_database": [Function((), NAME, lambda s: s.database)],
    "version": [Function((), TEXT, lambda s: VERSION)],
    "current_setting": [Function((TEXT,), TEXT, _setting)],
    "set_config": [Function((TEXT, TEXT, BOOL), TEXT, _set_config)],
    "nextval": [Function((TEXT,), INT8, lambda s, name: s.server.sequence(name).next())],
    "abs": [
        Function((INT4,), INT4, _absolute), Function((INT8,), INT8, _absolute),
        Function((FLOAT8,), FLOAT8, _absolute),
    ],
    "length": [Function((TEXT,), INT4, lambda s, words: len(words))],
    "lower": [Function((TEXT,), TEXT, lambda s, words: words.lower())],
    "upper": [Function((TEXT,), TEXT, lambda s, words: words.upper())],
}  # fmt: skip
KNOWN_ELSEWHERE = re.compile(r"pg_|txid_|gen_|json|array|string_|to_|date_|random|substr|concat")
"""Functions that PostgreSQL has and the model may lack."""
AGGREGATES = ("count", "max", "min", "sum")
VARIADIC = ("coalesce", "greatest", "least")
