"""Builds a static site from the results folder, with relative links only, so it opens from a disk.

    DIR/index.html  trend.html  runs.html  style.css  badge.json
    DIR/docs/*.html                 documents: findings, claims, known defects, ...
    DIR/register/                   the register: a table, a page for each row, badges
    DIR/runs/TEST/TIME/report.html  laid out as in the results folder, so that links work

The size of a site is limited. Suites, matrices and the like come first, the newest first, each
with a summary of every run that it names. Then full reports replace summaries while there is room:
first of runs whose outcome changed, then of runs with a violation, then of others.

A new site is written next to the old one and replaces it when it is complete.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec

from fencepost import plainfile
from fencepost.atomic_write import beside, exchange
from fencepost.harness.campaigns import nightly
from fencepost.harness.errors import BadArguments, Crashed
from fencepost.harness.publish import documents, register
from fencepost.harness.results import results, run_index
from fencepost.harness.results.run_index import Stored
from fencepost.report.pages import nightly as nightly_page
from fencepost.report.pages import page
from fencepost.report.words.settings import again
from fencepost.workloads.scenarios.register.rows import NOT_SHOWN, ROWS

MARK = ".fencepost-site"
MOST_BYTES = 50_000_000
_SUMMARY_BYTES = 3_000
"""Maximum size of a summary and its row (more only with long names)."""
_ROOM = 1_000_000
"""Bytes reserved for documents, index and trend."""
_DATA = ("night.json", "campaign.json", "campaign.jsonl", "suite.json", "matrix.json", "matrix.csv",
         "sweep.json", "sweep.csv")  # fmt: skip


@dataclass
class _Shelf:
    """The contents of the site: collections and runs by name; `whole`: runs with a full report."""

    collections: dict[str, Stored] = field(default_factory=dict)
    runs: dict[str, Stored] = field(default_factory=dict)
    whole: set[str] = field(default_factory=set)
    left_out: int = 0
    room: int = 0


def build(to: Path, docs: Path, most_bytes: int, say: Callable[[str], None]) -> Path:
    """Write the site into a folder of at most `most_bytes`; return the path of its index.

    Raises:
        BadArguments: the folder has files and is not a site of fencepost; or the documents alone
            exceed the limit.
        Crashed: the site cannot be written.
    """
    _must_be_ours(to)
    scratch = beside(to)
    try:
        scratch.mkdir(parents=True)
        register.write(scratch / "register", ROWS, NOT_SHOWN)
        shelf = _chosen(most_bytes - _size_of(scratch))
        _write(scratch, shelf, docs, most_bytes)
        size = _size_of(scratch)
        if size > most_bytes:
            raise BadArguments(
                f"the site would take {run_index.sized(size)}, more than the limit of "
                f"{run_index.sized(most_bytes)}: raise --most"
            )
        _put(scratch, to)
    except OSError as error:
        raise Crashed(f"cannot write the site {to}: {error.strerror or error}") from error
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    say(
        f"{len(shelf.collections)} collections, {len(shelf.runs)} runs ({len(shelf.whole)} with "
        f"full reports, {shelf.left_out} left out), {run_index.sized(size)}"
    )
    return to / "index.html"


def _put(made: Path, to: Path) -> None:
    """Put a site in its place; if that fails, keep the predecessor. Where the system can exchange
    folders, a reader always finds one of the two, and `made` is the predecessor afterwards."""
    if not to.exists():
        made.rename(to)
        return
    if exchange(made, to):
        return
    before = beside(to)
    to.rename(before)
    try:
        made.rename(to)
    except OSError:
        before.rename(to)
        raise
    shutil.rmtree(before, ignore_errors=True)


def _must_be_ours(to: Path) -> None:
    if to.is_symlink() or (to.exists() and not to.is_dir()):
        raise BadArguments(f"{to} is not a folder: name a new folder")
    if results.root().resolve().is_relative_to(to.resolve()):
        raise BadArguments(
            f"{to} contains the results folder {results.root()}: name another folder"
        )
    if to.is_dir() and any(to.iterdir()) and not (to / MARK).is_file():
        raise BadArguments(
            f"{to} has files and is not a fencepost site, so nothing was written: name another "
            "folder, or empty this one"
        )


def _chosen(most_bytes: int) -> _Shelf:
    """Choose the collections, runs and full reports that fit into the limit."""
    shelf = _Shelf(room=most_bytes - _ROOM)
    every = {one.name: one for one in run_index.runs() if not one.live and not one.problem}
    kinds = {name: one for name, one in every.items() if one.came is not None}
    # Nightly runs come first: they refer to all other collections.
    for name, one in sorted(kinds.items(), key=lambda row: row[1].kind != "night"):
        _add(shelf, name, one, every)
    for name, one in every.items():
        if one.came is None and name not in shelf.runs:
            _take(shelf, name, one)
    first = _changed(shelf)
    order = sorted(
        shelf.runs, key=lambda name: (name not in first, shelf.runs[name].valid is not False)
    )
    for name in order:
        size = _size(shelf.runs[name].folder / "report.html")
        if size and shelf.room >= size:
            shelf.room -= size
            shelf.whole.add(name)
    return shelf


def _add(shelf: _Shelf, name: str, one: Stored, every: dict[str, Stored]) -> None:
    """Add a collection (a suite, a matrix or the like) with its runs, if all of it fits."""
    names = dict.fromkeys(run_index.name_of(place) for place in run_index.named(one))
    runs = {run: every[run] for run in names if run in every and every[run].came is None}
    new = [run for run in runs if run not in shelf.runs]
    size = sum(_size(one.folder / file) for file in _files(one))
    needed = size + len(new) * _SUMMARY_BYTES + _SUMMARY_BYTES
    if not _size(one.folder / "report.html") or shelf.room < needed:
        shelf.left_out += 1
        return
    shelf.room -= needed
    shelf.collections[name] = one
    shelf.runs |= runs


def _files(one: Stored) -> tuple[str, ...]:
    """Return the files of a collection. Of hunts, lines have thousands of numbers for their page
    alone."""
    return ("report.html", *(() if one.kind == "campaign" else _DATA))


def _take(shelf: _Shelf, name: str, one: Stored) -> None:
    if shelf.room < _SUMMARY_BYTES:
        shelf.left_out += 1
        return
    shelf.room -= _SUMMARY_BYTES
    shelf.runs[name] = one


def _changed(shelf: _Shelf) -> set[str]:
    """Return the runs whose outcome changed in a nightly run."""
    found = set()
    for one in shelf.collections.values():
        if one.kind == "night":
            found |= {row.run for row in nightly.read(one.folder).entries if row.state == "changed"}
    return found


def _size_of(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _size(path: Path) -> int:
    """Return the size of a file in bytes; 0 if it does not exist or is a link."""
    return path.stat().st_size if plainfile.exists(path) and not path.is_symlink() else 0


def _write(to: Path, shelf: _Shelf, docs: Path, most_bytes: int) -> None:
    (to / MARK).write_text("made by `fencepost site`, which replaces this folder\n")
    (to / "style.css").write_text(page.source("page.css"), encoding="utf-8")
    for name, one in shelf.collections.items():
        place = _folder(to, name)
        for file in _files(one):
            if _size(one.folder / file):
                shutil.copyfile(one.folder / file, place / file)
    for name, one in shelf.runs.items():
        place = _folder(to, name)
        if name in shelf.whole:
            shutil.copyfile(one.folder / "report.html", place / "report.html")
        else:
            page.write(place / "report.html", "summary.html", _summary(name, one))
    texts = documents.write(docs, to / "docs")
    rows = _nights(shelf)
    if rows:
        page.write(
            to / "trend.html", "trend.html", nightly_page.trend(rows) | {"back": "index.html"}
        )
        newest = rows[-1][1]
        (to / "badge.json").write_text(
            json.dumps(nightly_page.badge(newest)) + "\n", encoding="utf-8"
        )
    about = {"whole": len(shelf.whole), "runs": len(shelf.runs), "left_out": shelf.left_out,
             "most": run_index.sized(most_bytes)}  # fmt: skip
    values = {"about": about, "documents": texts, "trend": bool(rows),
              "headline": nightly_page.headline(rows[-1][1]) if rows else ""}  # fmt: skip
    page.write(to / "index.html", "index.html", values | {"groups": list(_groups(shelf))})
    page.write(to / "runs.html", "runs.html", {"about": about, "rows": [
        _row(name, one) | {"whole": name in shelf.whole} for name, one in shelf.runs.items()
    ]})  # fmt: skip


def _folder(to: Path, name: str) -> Path:
    place = to / "runs" / name
    place.mkdir(parents=True)
    return place


def _nights(shelf: _Shelf) -> list[tuple[str, dict[str, Any]]]:
    """Return the nightly runs with their links, the oldest first."""
    found = [(name, one) for name, one in shelf.collections.items() if one.kind == "night"]
    return [
        (_link(name), msgspec.to_builtins(nightly.read(one.folder)))
        for name, one in sorted(found, key=lambda row: row[1].folder.name)
    ]


_TITLES = {
    "night": "Nightly runs", "suite": "Suites", "matrix": "Matrices", "sweep": "Sweeps",
    "track-record": "Known defects", "campaign": "Hunt campaigns", "bench": "Costs",
    "defects": "Defects of the catalogue",
}  # fmt: skip


def _groups(shelf: _Shelf) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    for kind, title in _TITLES.items():
        rows = [_row(name, one) for name, one in shelf.collections.items() if one.kind == kind]
        if rows:
            yield title, sorted(rows, key=lambda row: str(row["began"]), reverse=True)


def _row(name: str, one: Stored) -> dict[str, Any]:
    return {
        "name": name, "link": _link(name), "kind": one.kind, "said": one.said, "valid": one.valid,
        "lock": one.lock, "holds": one.holds, "faults": ", ".join(one.faults),
        "seed": one.came.seed if one.came else one.test.get("seed"),
        "began": one.began.strftime("%Y-%m-%d %H:%M"),
    }  # fmt: skip


def _link(name: str) -> str:
    return f"runs/{quote(name, errors='replace')}/report.html"


def _summary(name: str, one: Stored) -> dict[str, Any]:
    checkers = one.results.get("checkers") or {}
    return _row(name, one) | {
        "guard": one.test.get("guard") or "",
        "checkers": {
            title: (found.get("valid"), str(found.get("summary", ""))[:300])
            for title, found in checkers.items()
        },
        "again": again(one.test, one.folder) or "",
    }
