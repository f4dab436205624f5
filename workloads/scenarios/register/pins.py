"""The versions that a project pins: requirements.txt, package-lock.json, go.mod."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from fencepost.workloads.scenarios.register.row import Row

_REQUIRED = re.compile(r"([A-Za-z0-9][\w.-]*)\s*(?:\[[^\]]*\])?\s*(.*)")
_PINNED = re.compile(r"===?\s*([\w.+!]+)$")
_GO = re.compile(r"(?:require\s+)?(\S+\.\S+)\s+v(\S+)")


@dataclass(frozen=True)
class Pin:
    """A package of a project. `version` is '' where the file does not pin one."""

    ecosystem: str
    package: str
    version: str


class Unreadable(Exception):
    """The file is not one of those that can be read."""


def read(path: Path) -> list[Pin]:
    """Return the packages in a file. Its name decides how it is read: go.mod, *.json, or else
    requirements.

    Raises:
        Unreadable: the file is missing, or has another format than its name says.
    """
    try:
        content = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text"
        raise Unreadable(f"cannot read {path}: {why}") from error
    if path.name == "go.mod":
        return list(_go(path, content))
    return list(_npm(path, content) if path.suffix == ".json" else _pypi(path, content))


def _pypi(path: Path, content: str) -> Iterable[Pin]:
    for line in content.replace("\\\n", " ").splitlines():
        wanted = re.split(r"(?:^|\s)#", line)[0].split(" --")[0].split(";")[0].strip()
        if not wanted or wanted.startswith("-"):
            continue
        found = _REQUIRED.fullmatch(wanted)
        if not found or not re.match(r"[=<>!~@(]|$", found[2]):
            raise Unreadable(f"cannot read {path}: {wanted!r} is not a requirement (name==version)")
        pinned = _PINNED.fullmatch(found[2].strip())
        yield Pin("pypi", plain(found[1]), pinned[1] if pinned else "")


def _npm(path: Path, content: str) -> Iterable[Pin]:
    try:
        packages = json.loads(content)["packages"]
        for place, one in packages.items():
            if "node_modules/" in place:
                version = str(one.get("version", ""))
                yield Pin("npm", place.rpartition("node_modules/")[2], version)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        why = "it has no `packages` as package-lock.json of npm 7 or newer has them"
        raise Unreadable(f"cannot read {path}: {why}") from error


def _go(path: Path, content: str) -> Iterable[Pin]:
    lines = [line.partition("//")[0].strip() for line in content.splitlines()]
    if not any(line.startswith("module ") for line in lines):
        raise Unreadable(f"cannot read {path}: it has no line `module ...`, as go.mod has")
    for line in lines:
        if found := _GO.fullmatch(line):
            yield Pin("go", found[1], found[2])


def plain(name: str) -> str:
    """Return the name of a Python package as PyPI compares it (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def concerned(pins: Iterable[Pin], rows: Iterable[Row]) -> list[tuple[Pin, Row]]:
    """Return the rows that concern these packages. A package without a pinned version is
    concerned by every row of it."""
    known = list(rows)
    return [
        (pin, row)
        for pin in pins
        for row in known
        if (pin.ecosystem, pin.package) == (row.ecosystem, row.package)
        and (not _is_number(pin.version) or row.concerns(pin.version))
    ]


def _is_number(version: str) -> bool:
    return bool(re.match(r"v?\d", version))
