"""The registry of suites: built-in ones, a line each, and those of installed packages."""

from __future__ import annotations

from collections.abc import Container, Iterable

from fencepost.checker.checkers import CHECKERS
from fencepost.registry import Registry
from fencepost.settings import SETTINGS
from fencepost.workloads.locks.registry import LOCKS
from fencepost.workloads.resources.registry import GUARDS
from fencepost.workloads.scenarios import (
    etcd,
    leaders,
    libraries,
    postgres,
    rates,
    redis,
    redlock,
    zookeeper,
)
from fencepost.workloads.scenarios.claims import CLAIMS
from fencepost.workloads.scenarios.suite import Cost, Entry, Suite


def known(suite: Suite) -> None:
    """Raise ValueError if a suite names a lock, a guard, a claim, a checker or a setting that does
    not exist, or gives a setting a value that it does not take."""
    for entry in suite.entries:
        try:
            _known(suite, entry)
        except ValueError as error:
            raise ValueError(f"entry {entry.name}: {error}") from error


def _known(suite: Suite, entry: Entry) -> None:
    _must_exist("claim", entry.claims, CLAIMS)
    if isinstance(entry, Cost):
        _must_exist("lock", entry.locks, LOCKS)
        return
    _must_exist("lock", (entry.lock or suite.lock,), LOCKS)
    _must_exist("guard", (entry.guard,), GUARDS)
    _must_exist("checker", entry.expected, CHECKERS)
    _must_exist("setting", entry.settings, SETTINGS)
    for name, value in entry.settings.items():
        SETTINGS[name].check(value)


def _must_exist(kind: str, names: Iterable[str], there: Container[str]) -> None:
    for name in names:
        if name not in there:
            raise ValueError(f"there is no {kind} {name!r}")


SUITES = Registry(
    "fencepost.suites",
    Suite,
    (
        redlock.SUITE,
        redis.SUITE,
        zookeeper.SUITE,
        etcd.SUITE,
        postgres.SUITE,
        libraries.SUITE,
        leaders.SUITE,
        rates.SUITE,
    ),
    known,
)
