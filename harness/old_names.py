"""Options and keywords by their names of the last version, each accepted for one version.

`RENAMED` is the one list of them, by command. A command line or a fencepost.toml that has an old
name works as before, and a line on standard error says the new one; a Python call warns with
DeprecationWarning.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

RENAMED: Mapping[str, Mapping[str, str]] = {
    "hunt": {"until": "goal"},
}
"""By command: the old name of an option, without its dashes, and the name of today."""


def words(line: Sequence[str]) -> list[str]:
    """Return a command line with the names of today. `line` begins with the command."""
    renamed = RENAMED.get(line[0], {}) if line else {}
    found, said = [], set()
    for word in line:
        option, equals, value = word.partition("=")
        new = renamed.get(option.removeprefix("--")) if option.startswith("--") else None
        if new is None:
            found.append(word)
            continue
        found.append(f"--{new}{equals}{value}")
        if option not in said:
            said.add(option)
            _say(option, f"--{new}")
    return found


def keys(command: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys of a fencepost.toml with the names of today."""
    for old, new in RENAMED.get(command, {}).items():
        if old in given:
            _say(old, new)
    return translated(command, given)


def _say(old: str, new: str) -> None:
    print(f"fencepost: {old} is now {new}", file=sys.stderr)


def keywords(command: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keyword arguments of a Python call with the names of today; each old one warns.

    Raises:
        TypeError: an argument is given by both of its names.
    """
    for old, new in RENAMED.get(command, {}).items():
        if old in given:
            if new in given:
                raise TypeError(f"{command}: {old} is now {new}: give only the latter")
            warnings.warn(f"{old} is now {new}", DeprecationWarning, _outside())
    return translated(command, given)


def _outside() -> int:
    """Return the stack level of the call that came from outside fencepost."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals["__name__"].startswith("fencepost."):
        level, frame = level + 1, frame.f_back
    return level


def translated(command: str, stored: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments that an earlier version has stored, with the names of today."""
    renamed = RENAMED.get(command, {})
    return {renamed.get(name, name): value for name, value in stored.items()}
