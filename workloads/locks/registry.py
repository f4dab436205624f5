"""The locks that can be tested: what each needs, promises and lets one choose."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from workloads.locks.broken import AlwaysYes, NoOwnerCheck, NoTtl
from workloads.locks.lock import Env, Lock
from workloads.locks.redis import RedisLock
from workloads.locks.redlock import Redlock

Make = Callable[[Env, Sequence[str], Mapping[str, Any]], Lock]


@dataclass(frozen=True)
class Option:
    """One option of a lock: its default, and the values or the least number that make sense."""

    default: Any
    choices: tuple[Any, ...] = ()
    least: int = 0
    what: str = ""

    def read(self, name: str, text: str) -> Any:
        """The value that `text` means.

        Raises:
            ValueError: naming what would be valid.
        """
        if self.choices:
            for choice in self.choices:
                if text.lower() == str(choice).lower():
                    return choice
            valid = ", ".join(str(choice).lower() for choice in self.choices)
            raise ValueError(f"option {name}={text}: choose one of {valid}")
        try:
            number = int(text)
        except ValueError:
            number = self.least - 1
        if number < self.least:
            raise ValueError(f"option {name}={text}: a whole number from {self.least} on")
        return number


_TIMING = {
    "retries": Option(10, what="tries after the first, before acquire gives up"),
    "retry_delay_ms": Option(100, least=1, what="the longest random delay between tries"),
    "node_timeout_ms": Option(50, least=1, what="how long one server may take to answer"),
}


@dataclass(frozen=True)
class LockType:
    """A lock by name. `servers` is how many nodes of `kind` it runs on."""

    name: str
    what: str
    make: Make
    servers: int
    kind: str = "redis"
    options: Mapping[str, Option] = field(default_factory=lambda: dict(_TIMING))
    token_option: bool = False
    promises: Mapping[str, bool] = field(default_factory=dict)

    def has_token(self, options: Mapping[str, Any]) -> bool:
        return self.token_option and options.get("token", "none") != "none"

    def read_options(self, given: Mapping[str, str]) -> dict[str, Any]:
        """Every option with its value, from text.

        Raises:
            ValueError: an option that the lock does not have, or a value that makes no sense.
        """
        unknown = sorted(set(given) - set(self.options))
        if unknown:
            valid = ", ".join(sorted(self.options))
            raise ValueError(f"lock {self.name} has no option {unknown[0]}; it has {valid}")
        return {
            name: option.read(name, given[name]) if name in given else option.default
            for name, option in self.options.items()
        }


_BROKEN = {"token": Option("none", ("none", "incr")), **_TIMING}

LOCKS: dict[str, LockType] = {
    lock.name: lock
    for lock in (
        LockType(
            name="redlock",
            what="Redlock on five independent Redis servers (redis.io, Sanfilippo)",
            make=Redlock,
            servers=5,
            options={
                "token": Option(
                    "none",
                    ("none", "value", "one", "majority"),
                    what="where a token comes from: none; the random value read as a number; "
                    "INCR on the first server; the highest INCR of the servers that granted",
                ),
                "clock_check": Option(
                    True, (True, False), what="look at the clock after the servers answered"
                ),
                **_TIMING,
            },
            token_option=True,
            promises={"minority": True},
        ),
        LockType(
            name="redis",
            what="one Redis server: SET NX PX, compare-and-delete in Lua",
            make=RedisLock,
            servers=1,
            options={
                "token": Option("none", ("none", "incr"), what="INCR together with the SET"),
                **_TIMING,
            },
            token_option=True,
        ),
        LockType(
            name="broken-always-yes",
            what="broken on purpose: grants to everybody, always token 1",
            make=AlwaysYes,
            servers=1,
            options={"token": Option("one", ("one",)), **_TIMING},
            token_option=True,
        ),
        LockType(
            name="broken-no-owner-check",
            what="broken on purpose: releases with DEL, whoever holds the lock by then",
            make=NoOwnerCheck,
            servers=1,
            options=_BROKEN,
            token_option=True,
        ),
        LockType(
            name="broken-no-ttl",
            what="broken on purpose: SET NX without an expiry",
            make=NoTtl,
            servers=1,
            options=_BROKEN,
        ),
    )
}
