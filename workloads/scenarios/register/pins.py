"""The versions that a project pins: requirements.txt, locks of Python's installers in TOML,
package-lock.json, go.mod."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from fencepost import plainfile, strictjson
from fencepost.workloads.scenarios.register.row import Row

_REQUIRED = re.compile(r"([A-Za-z0-9][\w.-]*)\s*(?:\[[^\]]*\])?\s*(.*)")
_INCLUDED = re.compile(r"(?:-r\s*|--requirement[\s=]\s*)(.+)")
_PINNED = re.compile(r"===?\s*([\w.+!]+)$")
_LONGEST = 100  # characters of a version that is compared


@dataclass(frozen=True)
class Pin:
    """A package of a project. `version` is '' where the file does not pin one."""

    ecosystem: str
    package: str
    version: str


class Unreadable(Exception):
    """The file is not one of those that can be read."""


def read(path: Path) -> list[Pin]:
    """Return the packages in a file, each once. Its name decides how it is read: go.mod, *.json,
    *.lock and *.toml (uv.lock, poetry.lock, pdm.lock, pylock.toml), or else requirements, with
    those of the files that `-r` names.

    Raises:
        Unreadable: a file is missing, or has another format than its name says.
    """
    return list(dict.fromkeys(_pins(path, set())))


def _pins(path: Path, seen: set[Path]) -> Iterable[Pin]:
    try:
        content = plainfile.read(path).decode("utf-8").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise Unreadable(f"cannot read {path}: it is not text in UTF-8") from error
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise Unreadable(f"cannot read {path}: {why}") from error
    if path.name == "go.mod":
        yield from _go(path, content)
    elif reader := _READERS.get(path.suffix):
        yield from reader(path, content)
    else:
        yield from _pypi(path, content, seen)


def _pypi(path: Path, content: str, seen: set[Path]) -> Iterable[Pin]:
    seen.add(path.resolve())
    for line in content.replace("\\\n", " ").splitlines():
        wanted = re.split(r"(?:^|\s)#", line)[0].split(" --")[0].split(";")[0].strip()
        if included := _INCLUDED.fullmatch(wanted):
            other = path.parent / included[1]
            if other.resolve() not in seen:
                yield from _pins(other, seen)
        if not wanted or wanted.startswith("-"):
            continue
        found = _REQUIRED.fullmatch(wanted)
        if not found or not re.match(r"[=<>!~@(]|$", found[2]):
            what = f"{wanted[:80]!r} is not a requirement (name==version)"
            raise Unreadable(f"cannot read {path}: {what}")
        pinned = _PINNED.fullmatch(found[2].strip())
        yield Pin("pypi", plain(found[1]), pinned[1] if pinned else "")


def _toml(path: Path, content: str) -> Iterable[Pin]:
    try:
        found = tomllib.loads(content)
        # pylock.toml (PEP 751) has `packages`, the others `package`.
        for one in found["packages"] if "packages" in found else found["package"]:
            yield Pin("pypi", plain(one["name"]), str(one.get("version", "")))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        why = "it has no list of packages as uv.lock, poetry.lock and pylock.toml have it"
        raise Unreadable(f"cannot read {path}: {why}") from error


def _npm(path: Path, content: str) -> Iterable[Pin]:
    try:
        packages = strictjson.decode(content.encode())["packages"]
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
        match line.split():
            case ["require", package, version] | [package, version] if (
                "." in package and version.startswith("v")
            ):
                yield Pin("go", package, version[1:])


_READERS = {".json": _npm, ".lock": _toml, ".toml": _toml}


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
        and (not _is_comparable(pin.version) or row.concerns(pin.version))
    ]


def _is_comparable(version: str) -> bool:
    return len(version) <= _LONGEST and bool(re.match(r"v?[0-9]", version))
