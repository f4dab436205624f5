"""Rows on several versions of their package: reads `redis-py=5..8`.

A name is that of a package or of its software. Its versions are separated by commas:

    5..8     the newest release of each of 5, 6, 7 and 8; also 5.1..5.4
    5        the newest release of 5
    5.0.8    this release
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from fencepost.workloads.scenarios.defects import Defect
from fencepost.workloads.scenarios.register.pins import plain
from fencepost.workloads.scenarios.register.row import Row

MOST = 50
"""The most versions of one range."""
_NUMBERS = r"\d{1,9}(?:\.\d{1,9})*"
_RANGE = re.compile(rf"({_NUMBERS})\.\.({_NUMBERS})")
_RELEASE = re.compile(r"\d[\w.+-]{0,60}")
_NEEDS = re.compile(r"^Needs: (?:pip|npm) install (.+?)[;,.](?:\s|$)", re.MULTILINE | re.DOTALL)
_PYPI = re.compile(r"([\w.-]+)((?:\[[\w,-]+\])?)")
_NPM = re.compile(r"(@?[^@]+)")


class BadVersions(ValueError):
    """The text is not NAME=VERSIONS."""


@dataclass(frozen=True)
class Wanted:
    """A version of a package. `newest`: the newest release that begins with it."""

    version: str
    newest: bool

    def __str__(self) -> str:
        return f"{self.version}.*" if self.newest else self.version


@dataclass(frozen=True)
class Packages:
    """The packages that a script needs from a registry; `names` begins with that of its row."""

    ecosystem: str
    wanted: tuple[str, ...]
    names: tuple[str, ...]


def parse(text: str) -> tuple[str, list[Wanted]]:
    """Return the name and its versions, each once, in the order of the text.

    Raises:
        BadVersions: the text has another form.
    """
    name, equal, versions = text.partition("=")
    if not (name.strip() and equal and versions.strip()):
        raise BadVersions(f"{text!r} names no versions (for example: redis-py=5..8)")
    found = [one for part in versions.split(",") for one in _part(part.strip())]
    return name.strip(), list(dict.fromkeys(found))


def _part(text: str) -> Iterator[Wanted]:
    if ends := _RANGE.fullmatch(text):
        yield from _range(text, ends[1], ends[2])
    elif _RELEASE.fullmatch(text):
        yield Wanted(text, newest=text.isdecimal())
    else:
        raise BadVersions(f"{text!r} is not a version (for example: 5..8, 5 or 5.0.8)")


def _range(text: str, low: str, high: str) -> Iterator[Wanted]:
    before, _, first = low.rpartition(".")
    same, _, last = high.rpartition(".")
    if before != same or not 0 <= int(last) - int(first) < MOST:
        raise BadVersions(
            f"{text!r} is not a range of at most {MOST} versions in which only the last number "
            "rises (for example: 5..8)"
        )
    for number in range(int(first), int(last) + 1):
        yield Wanted(f"{before}.{number}" if before else str(number), newest=True)


def named(name: str, rows: Iterable[Row]) -> list[Row]:
    """Return the rows of a package or a software."""
    return [row for row in rows if plain(name) in {plain(one) for one in names(row)}]


def names(row: Row) -> tuple[str, ...]:
    """Return the names of the package of a row: that of its software, and that in the registry."""
    return row.software.partition(",")[0], row.package


def on_nodes(name: str, defects: Iterable[Defect], rows: Iterable[Row]) -> list[Defect]:
    """Return the defects of a software that only the track record shows, and no script."""
    scripted = {row.track_record for row in rows}
    return [
        one
        for one in defects
        if plain(name) in (plain(one.lock), plain(one.software.partition(",")[0]))
        and one.name not in scripted
    ]


def needs(row: Row) -> tuple[str, ...]:
    """Return the packages of PyPI or npm that the row's script needs, with their versions."""
    found = _NEEDS.search(row.script.read_text(encoding="utf-8"))
    return tuple(shlex.split(found[1])) if found else ()


def packages(row: Row, wanted: Wanted) -> Packages:
    """Return the packages that the row's script needs, with this version of its own. The others
    have no version: the installer chooses one that fits.

    Raises:
        ValueError: the script names no package of a registry.
    """
    words = needs(row)
    if not words or not row.ecosystem:
        raise ValueError(f"{row.name} needs no package of PyPI or npm whose version could be set")
    return _npm(row, words, wanted) if row.ecosystem == "npm" else _pypi(row, words, wanted)


def _pypi(row: Row, words: Sequence[str], wanted: Wanted) -> Packages:
    split = [(match[1], match[2]) for match in map(_PYPI.match, words) if match]
    asked = f"=={wanted.version}.*" if wanted.newest else f"=={wanted.version}"
    own = plain(row.package)
    return Packages(
        row.ecosystem,
        tuple(f"{one}{extra}{asked if plain(one) == own else ''}" for one, extra in split),
        tuple(sorted((one for one, _ in split), key=lambda one: plain(one) != own)),
    )


def _npm(row: Row, words: Sequence[str], wanted: Wanted) -> Packages:
    split = [match[1] for match in map(_NPM.match, words) if match]
    return Packages(
        row.ecosystem,
        tuple(f"{one}@{wanted.version}" if one == row.package else one for one in split),
        tuple(sorted(split, key=lambda one: one != row.package)),
    )
