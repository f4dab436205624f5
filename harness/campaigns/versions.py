"""Rows of the register on several versions of their packages (`fencepost track-record --versions`).

A row is played by its script, in an environment that has one version of the row's package. It gives
`seen`, `not seen`, or `not played` if the version cannot be installed or the script ends otherwise.
An outcome is as expected if the register says the same of that version, or nothing.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar

import msgspec

from fencepost.harness.campaigns.environments import Environment, ended, environment
from fencepost.harness.campaigns.item import Item, Watcher
from fencepost.harness.cluster.cluster import Cluster
from fencepost.harness.errors import BadArguments, Crashed, choose
from fencepost.workloads.scenarios.defects import DEFECTS
from fencepost.workloads.scenarios.register import standalone, versions
from fencepost.workloads.scenarios.register.row import Row
from fencepost.workloads.scenarios.register.rows import ROWS
from fencepost.workloads.scenarios.register.versions import BadVersions, Packages, Wanted

SEEN, NOT_SEEN = "seen", "not seen"
ON_NODES = "it runs on nodes, whose image has one version, and no script shows it"
NO_PACKAGE = "its script needs a server, and no package of PyPI or npm"
_SCRIPT_S = 600.0
_TAKES_S = 20.0
# Where Debian has servers that are not in every PATH.
_PROGRAMS = (Path("/usr/sbin"), *sorted(Path("/usr/lib/postgresql").glob("*/bin")))
_ASSERTION = re.compile(r"^AssertionError: (.+)", re.MULTILINE)


@dataclass(frozen=True)
class Cell:
    """A row, and a version of its package. `reason`: why it cannot be played, or ''."""

    name: str
    software: str
    what: str
    thread: str
    version: str
    row: Row | None = None
    packages: Packages | None = None
    reason: str = ""

    @property
    def key(self) -> str:
        return f"{self.name}/{self.version}" if self.version else self.name

    @property
    def command(self) -> str:
        return f"fencepost reproduce {self.name}"


@dataclass(frozen=True)
class Plan:
    """The rows of `asked` (`redis-py=5..8`); `only`: prefixes of their names, all if empty."""

    asked: tuple[str, ...]
    only: tuple[str, ...] = ()
    seed: int = 0
    kind: ClassVar[str] = "track-record"

    @cached_property
    def cells(self) -> dict[str, Cell]:
        found = [one for text in self.asked for one in cells(text)]
        chosen = {one.key: one for one in found if one.name.startswith(self.only or ("",))}
        if not any(not one.reason for one in chosen.values()):
            raise BadArguments(_why_none(found, self.only))
        return chosen

    def to_json(self) -> dict[str, Any]:
        return {"asked": list(self.asked), "only": list(self.only), "seed": self.seed}

    def rows(self) -> list[dict[str, Any]]:
        return [
            {
                "key": one.key,
                "defect": one.name,
                "software": one.software,
                "what": one.what,
                "issue": one.thread,
                "related": False,
                "where": one.version,
                "command": one.command,
            }
            | ({"reason": one.reason} if one.reason else {})
            for one in self.cells.values()
        ]

    def items(self, number: int) -> list[Item]:
        if number > 1:
            return []
        return [
            Item(one.key, play, asked=one, title=one.key, takes_s=_TAKES_S, leaves=False)
            for one in self.cells.values()
            if not one.reason
        ]

    def line(self, item: Item, found: Played) -> dict[str, Any]:
        """Return the outcome, the reason (`said`), the versions, and whether it was expected."""
        row, version = item.asked.row, next(iter(found.versions.values()))
        return {
            "outcome": SEEN if found.seen else NOT_SEEN,
            "said": found.said,
            "versions": dict(found.versions),
            "as_expected": not (row.mends if found.seen else row.concerns)(version),
            "date": datetime.now(UTC).date().isoformat(),
        }


@dataclass(frozen=True)
class Played:
    """The outcome of a script. `versions`: of its packages, that of the row first."""

    seen: bool
    said: str
    versions: Mapping[str, str]


def from_json(stored: Mapping[str, Any]) -> Plan:
    return msgspec.convert(stored, Plan)


def cells(text: str) -> list[Cell]:
    """Return the rows of `redis-py=5..8`, each with each version, and those that cannot be played.

    Raises:
        BadArguments: the text has another form, or there is no such software.
    """
    try:
        name, wanted = versions.parse(text)
    except BadVersions as error:
        raise BadArguments(f"--versions: {error}") from error
    rows, defects = versions.named(name, ROWS), versions.on_nodes(name, DEFECTS, ROWS)
    if not rows and not defects:
        choose("software", name, sorted({one for row in ROWS for one in versions.names(row)}))
    found = [cell for row in rows for cell in _of_row(row, wanted)]
    return found + [
        Cell(one.name, one.software, one.what, one.issue, "", reason=ON_NODES) for one in defects
    ]


def _of_row(row: Row, wanted: Sequence[Wanted]) -> Iterator[Cell]:
    about = (row.name, row.software, row.title, row.thread)
    if not (row.ecosystem and versions.needs(row)):
        yield Cell(*about, "", row, reason=NO_PACKAGE)
        return
    for one in wanted:
        yield Cell(*about, f"{row.package} {one}", row, versions.packages(row, one))


def _why_none(found: Sequence[Cell], only: Sequence[str]) -> str:
    reasons = {one.reason: [other.name for other in found if other.reason == one.reason]
               for one in found if one.reason}  # fmt: skip
    if sum(map(len, reasons.values())) == len(found):
        said = "; ".join(f"{', '.join(names)}: {reason}" for reason, names in reasons.items())
        return f"no row can be played on several versions ({said})"
    names = ", ".join(dict.fromkeys(one.name for one in found))
    return f"no row begins with {' or '.join(only)}; choose from: {names}"


def play(item: Item, cluster: Cluster | None, watcher: Watcher) -> Played:
    """Install the version, and run the script.

    Raises:
        Crashed: the version cannot be installed, or the script ends without an answer.
    """
    cell: Cell = item.asked
    assert cell.row is not None and cell.packages is not None
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), *map(str, _PROGRAMS)])
    if missing := [one for one in cell.row.programs if not shutil.which(one, path=path)]:
        raise Crashed(f"its script needs {' and '.join(missing)}, which this machine lacks")
    found = environment(cell.packages)
    code, said = _script(cell.row.script, found, path)
    if code == 0:
        return Played(False, "the script ran without showing the defect", found.versions)
    if code == 1 and (shown := _ASSERTION.search(said)):
        return Played(True, shown[1], found.versions)
    last = (said.strip().splitlines() or [f"exit code {code}"])[-1]
    named = " ".join(next(iter(found.versions.items())))
    raise Crashed(f"on {named} the script ends without an answer: {last}")


def _script(script: Path, found: Environment, path: str) -> tuple[int, str]:
    """Run the one file of a script, as `fencepost reproduce` writes it; return its exit code, and
    its standard error. Its processes and files end with it."""
    with TemporaryDirectory(prefix="fencepost-play-") as folder:
        os.chmod(folder, 0o755)  # a server may run as another user
        env = {**found.env, "PATH": path, "TMPDIR": folder}
        file = Path(folder) / script.name
        file.write_text(standalone.text(script), encoding="utf-8")
        process = subprocess.Popen(
            [found.python, str(file)], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE, text=True, errors="replace", env=env, start_new_session=True,
        )  # fmt: skip
        with ended(process):
            try:
                _, said = process.communicate(timeout=_SCRIPT_S)
            except subprocess.TimeoutExpired as error:
                raise Crashed(f"the script had not ended after {_SCRIPT_S:.0f} s") from error
    return process.returncode, said
