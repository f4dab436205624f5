"""The table of a played catalogue: a row for each defect, a cell for each way to play it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, Literal

from fencepost.checker.verdict import count
from fencepost.report import campaign_files

State = Literal["found", "partly", "missed", "cannot", "not played"]
WAYS = {"history": "history", "hunt": "hunt", "servers": "servers"}
"""The columns of the table, with their titles."""
_UNITS = {"history": ("history", "histories"), "hunt": ("schedule", "schedules")}
_TWIN = "Sound"


@dataclass(frozen=True)
class Cell:
    """The outcome of one way. `found` of `of` seeds; `words` for the table.

    `untrue`: checkers that say something untrue of the lock. `by`: a checker other than the named
    one, by which alone it was found. `twin`: whether the twin was played;
    `accused`: checkers that accuse it.
    """

    state: State
    words: str
    found: int = 0
    of: int = 0
    untrue: Sequence[str] = ()
    accused: Sequence[str] = ()
    twin: bool = False
    run: str = ""
    by: str = ""

    @property
    def wrong(self) -> bool:
        """Whether a checker says something untrue."""
        return bool(self.untrue or self.accused)


@dataclass(frozen=True)
class Row:
    """A defect with its cells, by way; `family` is the title of its family."""

    defect: str
    family: str
    what: str
    checker: str
    cells: Mapping[str, Cell] = field(default_factory=dict)


def table(folder: Path) -> list[Row]:
    """Return the table of a play of the catalogue.

    Raises:
        ReportError: there is none in this folder.
    """
    return of_rows(campaign_files.read(folder, "defects").rows)


def of_rows(rows: Iterable[Mapping[str, Any]]) -> list[Row]:
    """Return the table of stored rows, each with its lines under `runs`."""
    by_defect: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        by_defect.setdefault(row["defect"], []).append(row)
    return [_row(mine) for mine in by_defect.values()]


def _row(rows: Sequence[Mapping[str, Any]]) -> Row:
    first = rows[0]
    cells = {}
    for way in WAYS:
        mine = [row for row in rows if row["way"] == way and row["class"] != _TWIN]
        twins = [row for row in rows if row["way"] == way and row["class"] == _TWIN]
        if mine:
            cells[way] = _cell(mine[0], twins[0] if twins else None)
    return Row(first["defect"], first["family"], first["what"], first["checker"], cells)


def _cell(row: Mapping[str, Any], twin: Mapping[str, Any] | None) -> Cell:
    done = [line for line in row["runs"] if not line.get("crashed")]
    of_twin = [line for line in (twin or {}).get("runs", ()) if not line.get("crashed")]
    untrue = _named(line["accused"] for line in done)
    accused = _named(line["accused"] for line in of_twin)
    found = [line for line in done if line["found"]]
    cannot = row.get("reason") or next((line["cannot"] for line in done if line["cannot"]), "")
    run = next((line["run"] for line in (*found, *done) if line.get("run")), "")
    state: State = "found" if len(found) == len(done) else "partly" if found else "missed"
    # Lines of earlier versions have no `by`.
    by = found[0]["by"] if found and all(line.get("by") for line in found) else ""
    words = _found(row, by, found, len(done)) if found else "missed"
    if not done:
        why = next((line["crashed"] for line in row["runs"]), "")
        state, words = "not played", f"not played: {why}" if why else "not played"
    if cannot:
        state, words = "cannot", f"cannot be {'expressed' if row['checker'] else 'seen'}: {cannot}"
    elif lacks := _named(line["lacks"] for line in done):
        words += f" (lacks {'; '.join(lacks)})"
    words += f"; untrue: {', '.join(untrue)}" if untrue else ""
    words += f"; twin accused: {', '.join(accused)}" if accused else ""
    return Cell(state, words, len(found), len(done), untrue, accused, bool(of_twin), run, by)


def _named(lists: Iterable[Iterable[str]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for names in lists for name in names))


def _found(row: Mapping[str, Any], by: str, found: Sequence[Mapping[str, Any]], of: int) -> str:
    checker = by or row["checker"]
    words = [checker if of == 1 else f"{checker} {len(found)}/{of}"]
    seconds = [line["seconds"] for line in found if line["seconds"] is not None]
    if row["way"] in _UNITS:
        tried = median(line["tried"] for line in found)
        words.append(f"median {tried:,.0f} {_UNITS[row['way']][tried != 1]}")
    if seconds:
        after = median(seconds)
        words.append(f"{after:.1f} s" if row["way"] in _UNITS else f"after {after:.1f} s")
    return ", ".join(words)


@dataclass(frozen=True)
class Score:
    """How many defects one way finds: with every seed (`found`), with some (`partly`), of those
    that it can express and that were played (`of`). `cannot`: how many others it cannot express.
    `accused` of `twins`; `untrue`: defects of which a checker says something untrue; `others`: how
    many were found by another checker than the named one."""

    found: int
    partly: int
    of: int
    cannot: int
    accused: int
    twins: int
    untrue: int
    others: int

    @property
    def words(self) -> str:
        share = f" ({100 * self.found / self.of:.0f} %)" if self.of else ""
        words = [f"{self.found} of {count(self.of, 'defect')} found{share}"]
        words += [f"{self.others} of them by another checker"] * bool(self.others)
        words += [f"{self.partly} more with some seeds"] * bool(self.partly)
        words += [f"{self.cannot} cannot be expressed"] * bool(self.cannot)
        words += [f"{self.accused} of {count(self.twins, 'twin')} accused"] * bool(self.twins)
        words += [f"{count(self.untrue, 'defect')} with an untrue verdict"] * bool(self.untrue)
        return ", ".join(words)


def scores(rows: Iterable[Row]) -> dict[str, Score]:
    """Return the score of each way that was played."""
    found = {}
    rows = list(rows)
    for way in WAYS:
        cells = [row.cells[way] for row in rows if way in row.cells]
        played = [one for one in cells if one.state in ("found", "partly", "missed")]
        cannot = [one for one in cells if one.state == "cannot"]
        if played or cannot:
            found[way] = Score(
                sum(one.state == "found" for one in played),
                sum(one.state == "partly" for one in played),
                len(played),
                len(cannot),
                sum(bool(one.accused) for one in cells),
                sum(one.twin for one in cells),
                sum(bool(one.untrue) for one in cells),
                sum(bool(one.by) for one in played),
            )
    return found
