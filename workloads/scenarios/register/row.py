"""A row of the register: one defect of one package, and the evidence for it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

SCRIPTS = Path(__file__).parent / "scripts"
STEPS = Path(__file__).parent / "steps"
IMPACTS = {
    "two holders": "two clients hold the lock at the same time, or one believes so",
    "stuck": "no client can acquire the lock, although no client holds it",
    "slow": "the lock works, and its cost grows",
    "silent": "the lock is lost, and no call reports it to its holder",
}


@dataclass(frozen=True)
class Runs:
    """How often the script showed the defect, and when it was run last (YYYY-MM-DD)."""

    shown: int
    of: int
    first: str
    last: str


@dataclass(frozen=True)
class Row:
    """A defect that its script shows.

    `name` is the name of its script with dashes. `package` is the name in the registry
    `ecosystem` ("pypi", "npm", "go", or "" for a server). `versions` are those in which the script
    showed the defect, lowest first; `mended` is the first in which it did not, or ''.
    The script needs `modules`, `programs`, `files` (paths) and the packages `npm`. `track_record`
    names the same defect in workloads/scenarios/defects.py. The picture is steps/NAME.txt.
    """

    name: str
    software: str
    package: str
    versions: tuple[str, ...]
    impact: str
    title: str
    happens: str
    expected: str
    why: str
    fix: str
    modules: tuple[str, ...]
    programs: tuple[str, ...]
    runs: Runs
    ecosystem: str = "pypi"
    mended: str = ""
    thread: str = ""
    track_record: str = ""
    npm: tuple[str, ...] = ()
    files: tuple[str, ...] = ()

    @property
    def script(self) -> Path:
        return SCRIPTS / f"{self.name.replace('-', '_')}.py"

    @property
    def steps(self) -> list[str]:
        """Return the lines of its picture (report/figures/steps.py); none if it has no file."""
        file = STEPS / f"{self.name}.txt"
        return file.read_text(encoding="utf-8").splitlines() if file.exists() else []

    def concerns(self, version: str) -> bool:
        """Return whether a version lies between the lowest that showed the defect and the first
        that did not. A version newer than all that were run counts, because no fix is known."""
        return numbers(version) >= numbers(self.versions[0]) and not self.mends(version)

    def mends(self, version: str) -> bool:
        """Return whether a version is the first that did not show the defect, or a newer one."""
        return bool(self.mended) and numbers(version) >= numbers(self.mended)


@dataclass(frozen=True)
class NotShown:
    """A candidate that no script shows yet, and the attempts."""

    software: str
    what: str
    tried: str


def listed(rows: Iterable[Row], not_shown: Iterable[NotShown]) -> dict[str, Any]:
    """Return the register for programs: its rows, and the candidates that are not shown."""
    return {
        "rows": [asdict(row) | {"script": row.script.name, "steps": row.steps} for row in rows],
        "not_shown": [asdict(one) for one in not_shown],
    }


def numbers(version: str) -> tuple[int, ...]:
    """Return a version for comparison: "v4.2.0rc1" is (4, 2, 0). Zeros at the end do not count.

    Raises:
        ValueError: the version does not begin with a number.
    """
    found = []
    for part in version.removeprefix("v").split("."):
        digits = part[: len(part) - len(part.lstrip("0123456789"))]
        if not digits:
            break
        found.append(int(digits))
        if digits != part:
            break
    if not found:
        raise ValueError(f"{version!r} does not begin with a number")
    while found and not found[-1]:
        found.pop()
    return tuple(found)
