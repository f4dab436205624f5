"""The register on the site: a table, a page for each row, and a badge for each library and version.

A badge says how many rows concern a version in which a script was run.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from markupsafe import Markup

from fencepost.report.exports.badge import GREEN, RED, drawn
from fencepost.report.figures import steps_drawing
from fencepost.report.pages import page
from fencepost.workloads.scenarios.register import issue, standalone
from fencepost.workloads.scenarios.register.row import IMPACTS, NotShown, Row, listed, numbers

BADGES, SCRIPTS = "badges", "scripts"


def write(to: Path, rows: Sequence[Row], not_shown: Sequence[NotShown]) -> None:
    """Write index.html, register.json, sequence.css, ROW.html, scripts/ROW.py and
    badges/PACKAGE-VERSION.svg into a new folder."""
    (to / BADGES).mkdir(parents=True)
    (to / SCRIPTS).mkdir()
    (to / "sequence.css").write_text(page.source("sequence.css"), encoding="utf-8")
    (to / "register.json").write_text(json.dumps(listed(rows, not_shown)) + "\n", encoding="utf-8")
    badges = {(*key, _badge(*key)): _drawn(*key, len(found)) for key, found in _badges(rows)}
    for (_, _, file), picture in badges.items():
        (to / file).write_text(picture, encoding="utf-8")
    shown = [_shown(row, badges) for row in rows]
    values = {
        "rows": shown,
        "not_shown": not_shown,
        "software": sorted({_library(row) for row in rows}, key=str.lower),
        "impacts": {name: words for name, words in IMPACTS.items()
                    if any(row.impact == name for row in rows)},
    }  # fmt: skip
    page.write(to / "index.html", "register.html", values)
    for row, about in zip(rows, shown, strict=True):
        script = standalone.text(row.script)
        (to / SCRIPTS / row.script.name).write_text(script, encoding="utf-8")
        content: dict[str, Any] = {
            "row": about,
            "script": script,
            "issue": issue.text(row, row.script.name),
            "meaning": IMPACTS,
            "drawing": steps_drawing.drawing(row.steps, row.name) if row.steps else None,
        }
        page.write(to / f"{row.name}.html", "register-row.html", content)


def _badges(rows: Sequence[Row]) -> Iterator[tuple[tuple[str, str], list[Row]]]:
    """Yield each package and version that a script was run on, with the rows that concern it."""
    packages = {(row.package, row.ecosystem) for row in rows}
    for package, ecosystem in sorted(packages):
        its = [row for row in rows if (row.package, row.ecosystem) == (package, ecosystem)]
        versions = {one for row in its for one in (*row.versions, row.mended) if one}
        for version in sorted(versions, key=numbers):
            yield (package, version), [row for row in its if row.concerns(version)]


def _badge(package: str, version: str) -> str:
    return f"{BADGES}/{package.replace('/', '-')}-{version}.svg"


def _drawn(package: str, version: str, count: int) -> Markup:
    words = f"{count} open defect{'' if count == 1 else 's'}"
    colour = RED if count else GREEN
    return Markup(drawn(f"{package} {version}, tested by fencepost", words, colour))


def _shown(row: Row, badges: dict[tuple[str, str, str], Markup]) -> dict[str, Any]:
    its = [(file, picture) for (package, _, file), picture in badges.items()
           if package == row.package]  # fmt: skip
    return asdict(row) | {
        "heading": _heading(row),
        "library": _library(row),
        "state": f"mended in {row.mended}" if row.mended else "open",
        "badges": its,
        "file": row.script.name,
        "thread_name": row.thread.removeprefix("https://github.com/").replace("/issues/", " ")
        .replace("/pull/", " "),
    }  # fmt: skip


def _heading(row: Row) -> str:
    """Return software and title: "redis-py: asyncio Lock: ...", where both name the part."""
    part = row.software.partition(", ")[2]
    said = part and row.title.startswith(part)
    return f"{_library(row) if said else row.software}: {row.title}"


def _library(row: Row) -> str:
    """Return the name of its software without the part of it: "redis-py"."""
    return row.software.partition(",")[0]
