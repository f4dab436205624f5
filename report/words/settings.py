"""The spec of a test for a reader: its settings, and the command that repeats it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fencepost import commandline
from fencepost.commandline import command, lock_options, option
from fencepost.settings import SETTINGS

# Fields of test.json that are not settings, each with the setting that it precedes.
_FACTS = {
    "ttl_ms": (("servers", "Servers"), ("clients", "Client nodes")),
    "": (
        ("promises", "Promises"),
        ("checkers", "Checkers"),
        ("versions", "Versions"),
        ("started", "Started"),
    ),
}


def settings(test: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Return the labelled spec. A scenario's length and intervals follow from its steps, so they
    are left out."""
    left_out = ("time_s", "interval_s") if test.get("scenario") else ()
    rows = [("lock", "Lock")]
    for name, setting in SETTINGS.items():
        rows += [*_FACTS.get(name, ()), (name, setting.title)]
    rows += _FACTS[""]
    return [(label, test[key]) for key, label in rows if key in test and key not in left_out]


def named_versions(versions: Mapping[str, str]) -> list[str]:
    """Prefix versions with their programs' names, unless a version has one already, as postgres'
    "PostgreSQL 15.18"."""
    return [
        version if name.lower() in version.lower() else f"{name} {version}"
        for name, version in versions.items()
    ]


def again(test: Mapping[str, Any], run: Path) -> str | None:
    """Return the command that repeats this test, or None if no command can."""
    if test.get("scenario"):
        return _played(test, str(test["scenario"].get("name", "")))
    if test.get("simulated"):
        stored = str((test.get("hunt") or {}).get("command") or "")
        return stored if _is_hunt(stored) else None
    if test.get("scheduled") or test.get("plays") or (test.get("lock") or {}).get("own"):
        # No seed reproduces given faults, and a user lock is stored with the run as it was then.
        return command("test", "--replay", f"{run.parent.name}/{run.name}")
    lock: Mapping[str, Any] = test.get("lock") or {}
    return command(
        "test",
        str(lock.get("name", "LOCK")),
        commandline.settings(test),
        # As older versions stored it.
        option("until-violation", bool(test.get("until_violation"))),
        lock_options(lock.get("options") or {}),
    )


def _is_hunt(stored: str) -> bool:
    """Return whether a stored command only hunts: a person may copy it, and a file may come from
    anyone."""
    try:
        words = shlex.split(stored)
    except ValueError:
        return False
    # A hunt's own command is quoted in this way, so that a shell runs nothing else.
    return words[:2] == ["fencepost", "hunt"] and shlex.join(words) == stored


def _played(test: Mapping[str, Any], scenario: str) -> str | None:
    """Return the suite restricted to this scenario. A suite calls its tests
    SUITE-SCENARIO-GUARD."""
    suite, found, _ = str(test.get("name", "")).partition(f"-{scenario}-")
    if not (scenario and found):
        return None
    chosen = commandline.settings(test, "seed", "server")
    return command("suite", suite, chosen, option("only", scenario))
