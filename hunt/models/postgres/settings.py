"""The settings of a session that matter to locks."""

from __future__ import annotations

import re
from collections.abc import Mapping

from fencepost.hunt.models.postgres.errors import PgError
from fencepost.hunt.sim.unknown import Unknown

_MS = {
    "lock_timeout": 0, "statement_timeout": 0, "idle_in_transaction_session_timeout": 0,
    "idle_session_timeout": 0, "deadlock_timeout": 1000, "client_connection_check_interval": 0,
    "tcp_user_timeout": 0,
}  # fmt: skip
_SECONDS = {"tcp_keepalives_idle": 7200, "tcp_keepalives_interval": 75}
_COUNTS = {"tcp_keepalives_count": 9}
_WORDS = {
    "application_name": "", "client_encoding": "UTF8", "datestyle": "ISO, MDY",
    "timezone": "Etc/UTC", "search_path": '"$user", public', "standard_conforming_strings": "on",
    "synchronous_commit": "on", "client_min_messages": "notice", "server_version": "15.18",
    "transaction_isolation": "read committed", "extra_float_digits": "1",
    "default_transaction_isolation": "read committed", "jit": "on",
}  # fmt: skip
_FIXED = {
    "client_encoding": ("utf8", "unicode"), "timezone": ("utc", "etc/utc", "gmt"),
    "standard_conforming_strings": ("on", "true"), "default_transaction_isolation": (
        "read committed",
    ), "datestyle": ("iso", "iso, mdy"),
}  # fmt: skip
REPORTED = {"application_name": "application_name", "client_encoding": "client_encoding",
            "datestyle": "DateStyle", "timezone": "TimeZone"}  # fmt: skip
_UNITS = {"us": 0.001, "ms": 1, "s": 1000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}


class Settings:
    def __init__(self) -> None:
        self._values: dict[str, str | int] = {**_MS, **_SECONDS, **_COUNTS, **_WORDS}
        self._defaults = dict(self._values)

    def ms(self, name: str) -> int:
        return int(self._values[name])

    def start(self, given: Mapping[str, str]) -> None:
        """Take the parameters of a client's first message, which are the session's defaults."""
        for name, value in given.items():
            if name == "options":
                for one in re.findall(r"-c\s*(\w+=\S+)|--(\w+=\S+)", value):
                    self.set(*(one[0] or one[1]).split("=", 1))
            elif name == "replication":
                raise Unknown("the model of PostgreSQL has no replication")
            else:
                self.set(name, value)
        self._defaults = dict(self._values)

    def set(self, name: str, value: str | None) -> str | int | None:
        """Change a setting; return its former value, for `restore`."""
        name = name.lower()
        if name not in self._values and "." not in name:
            raise Unknown(f"the model of PostgreSQL has no setting {name}")
        before = self._values.get(name)
        if value is None:
            self._values[name] = self._defaults.get(name, "")
        else:
            self._values[name] = _parsed(name, value)
        return before

    def restore(self, name: str, value: str | int | None) -> None:
        if value is not None:
            self._values[name] = value

    def reset(self) -> None:
        self._values = dict(self._defaults)

    def show(self, name: str) -> str:
        name = name.lower()
        if name not in self._values:
            if "." in name:
                raise PgError("42704", f'unrecognized configuration parameter "{name}"')
            raise Unknown(f"the model of PostgreSQL has no setting {name}")
        value = self._values[name]
        if name in _MS and value:
            for unit in ("d", "h", "min", "s", "ms"):
                if int(value) % int(_UNITS[unit]) == 0:
                    return f"{int(value) // int(_UNITS[unit])}{unit}"
        return str(value)


def _parsed(name: str, value: str) -> str | int:
    if name in _MS or name in _SECONDS or name in _COUNTS:
        found = re.fullmatch(r"\s*(-?\d+(?:\.\d+)?)\s*(us|ms|s|min|h|d)?\s*", value)
        if found is None:
            raise PgError("22023", f'invalid value for parameter "{name}": "{value}"')
        number, unit = float(found[1]), found[2]
        if unit and name not in _COUNTS:
            number *= _UNITS[unit] / (1000 if name in _SECONDS else 1)
        if number < 0:
            least = f"{int(number)}{' ms' if name in _MS else ''}"
            top = 2147483647
            words = f'{least} is outside the valid range for parameter "{name}" (0 .. {top})'
            raise PgError("22023", words)
        return round(number)
    if name == "client_encoding":
        value = re.sub("[^0-9A-Za-z]", "", value)  # as clean_encoding_name (encnames.c) does
    fixed = _FIXED.get(name)
    if fixed is not None and value.lower() not in fixed:
        raise Unknown(f"the model of PostgreSQL has no {name} {value}")
    if name == "client_encoding":
        return "UTF8"
    if name == "timezone":
        return value
    return "ISO, MDY" if name == "datestyle" else value
