"""The spec of a test as a reader sees it: its settings, and the command that runs it again."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_SPEC = (
    ("lock", "Lock"),
    ("locks", "Locks"),
    ("guard", "Guard"),
    ("store", "Store"),
    ("nemesis", "Nemesis"),
    ("time_s", "Time (s)"),
    ("ttl_ms", "TTL (ms)"),
    ("interval_s", "Interval of faults (s)"),
    ("work", "Work"),
    ("seed", "Seed"),
    ("concurrency", "Concurrency"),
    ("servers", "Servers"),
    ("clients", "Client nodes"),
    ("persistence", "Persistence"),
    ("restart", "Restart"),
    ("failed_release", "A failed release means"),
    ("until", "Stopped by a violation of"),
    ("liveness_bound_s", "Liveness bound (s)"),
    ("promises", "Promises"),
    ("checkers", "Checkers"),
    ("versions", "Versions"),
    ("started", "Started"),
)
# test.json's keys, the command line's options and their units.
_OPTIONS = (
    ("nemesis", "--nemesis", ""),
    ("guard", "--guard", ""),
    ("store", "--store", ""),
    ("shared", "--shared", ""),
    ("locks", "--locks", ""),
    ("etcd", "--etcd", ""),
    ("time_s", "--time", "s"),
    ("seed", "--seed", ""),
    ("concurrency", "--concurrency", ""),
    ("ttl_ms", "--ttl", "ms"),
    ("interval_s", "--interval", "s"),
    ("persistence", "--persistence", ""),
    ("restart", "--restart", ""),
    ("failed_release", "--failed-release", ""),
    ("until", "--until", ""),
)


def settings(test: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """The spec, labelled; a scenario's length and intervals are not set but come of its steps."""
    left_out = ("time_s", "interval_s") if test.get("scenario") else ()
    return [(label, test[key]) for key, label in _SPEC if key in test and key not in left_out]


def again(test: Mapping[str, Any], run: Path) -> str | None:
    """The command that runs this test again; a scenario's is its suite's, which the page names."""
    if test.get("scenario"):
        return None
    if test.get("scheduled"):
        # No seed gives these faults once more: they were given.
        return shlex.join(["fencepost", "test", "--replay", f"{run.parent.name}/{run.name}"])
    lock: Mapping[str, Any] = test.get("lock") or {}
    words = ["fencepost", "test", str(lock.get("name", "LOCK"))]
    for key, option, unit in _OPTIONS:
        value = test.get(key)
        if isinstance(value, list):
            value = ",".join(map(str, value))
        if isinstance(value, float):
            value = f"{value:g}"
        if value not in (None, ""):
            words += [option, f"{value}{unit}"]
    if test.get("until_violation"):  # as older versions stored it
        words.append("--until-violation")
    for name, value in (lock.get("options") or {}).items():
        words += ["-o", f"{name}={str(value).lower() if isinstance(value, bool) else value}"]
    return shlex.join(words)
