"""Lists the runs as rows, filtered and sorted as a request asks.

Reading a run means parsing its results, which can be megabytes. So the row of a finished run is
cached until one of its files changes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread, current_thread
from typing import Any

from fencepost import plainfile
from fencepost.harness.results import run_index

_FILES = (
    "test.json", "run.json", "results.json", "suite.json", "matrix.json", "sweep.json",
    "track-record.json", "campaign.json", "campaign.jsonl", "seeds.jsonl", "bench.json",
    "report.html",
)  # fmt: skip
COLUMNS = {
    "began": "began", "run": "run", "kind": "kind", "what": "result", "lock": "lock",
    "guard": "guard", "faults": "faults", "holds": "holds", "duration_s": "length",
    "bytes": "size",
}  # fmt: skip
"""The columns that the list can be sorted by, with their titles."""
_FIGURES = ("began", "holds", "duration_s", "bytes")
"""The columns that are sorted in descending order by default."""
VERDICTS = {
    "valid": "valid", "invalid": "invalid", "unknown": "unknown", "none": "without a verdict",
    "running": "running",
}  # fmt: skip

Row = dict[str, Any]
_Answers = SimpleQueue[tuple[Path, Thread | Row | None]]


@dataclass(frozen=True)
class Asked:
    """The filters and the order of a request. Empty: all.

    `sort` is a column, with a minus in front for descending order. An unknown column is ignored.
    """

    text: str = ""
    kind: str = ""
    verdict: str = ""
    lock: str = ""
    fault: str = ""
    sort: str = ""

    @classmethod
    def of(cls, query: Mapping[str, str]) -> Asked:
        return cls(**{name: query.get(name, "").strip() for name in cls.__dataclass_fields__})

    @property
    def column(self) -> str:
        found = self.sort.removeprefix("-")
        return found if found in COLUMNS else "began"

    @property
    def falling(self) -> bool:
        return self.sort.startswith("-") or self.sort not in COLUMNS

    @property
    def filters(self) -> dict[str, str]:
        """The filters that are set, by name."""
        return {name: value for name, value in asdict(self).items() if value and name != "sort"}

    def sorted_by(self, column: str) -> dict[str, str]:
        """Return the query behind the title of a column: the same filters, sorted by that
        column."""
        first, second = both_ways(column)
        now = ("-" if self.falling else "") + self.column
        return self.filters | {"sort": second if now == first else first}

    def all(self) -> dict[str, str]:
        """Return the same query without a limit on the number of rows."""
        return self.filters | {"sort": self.sort, "all": "1"}

    def takes(self, row: Row) -> bool:
        return (
            (self.text.lower() in row["test"].lower() or row["run"] == self.text)
            and self.kind in ("", row["kind"])
            and self.verdict in ("", row["verdict"])
            and (not self.lock or self.lock in row["locks"])
            and (not self.fault or self.fault in row["faults"])
        )


def both_ways(column: str) -> tuple[str, str]:
    """Return the default order of a column and the opposite order."""
    return (f"-{column}", column) if column in _FIGURES else (column, f"-{column}")


class Shelf:
    """The rows of the results folder; each call reads its current state.

    A folder on a file system that hangs keeps its reader waiting, maybe for ever. So a thread of
    its own reads the folders. If it gets no answer for `patience_s`, the folder is listed without
    its content while the thread waits, and another thread reads the rest.
    """

    def __init__(self, patience_s: float = 2.0) -> None:
        self._patience_s = patience_s
        self._known: dict[Path, tuple[Any, Row]] = {}
        self._stuck: dict[Path, Thread] = {}

    def rows(self) -> list[Row]:
        """Return all rows, the newest first."""
        # A folder whose parent is a link may lead out of the results folder.
        folders = [one for one in run_index.candidates() if not one.parent.is_symlink()]
        self._stuck = {one: reader for one, reader in self._stuck.items() if reader.is_alive()}
        rows: dict[Path, Row | None] = {one: _hanging(one) for one in folders if one in self._stuck}
        self._read(folders, rows)
        self._known = {one: self._known[one] for one in folders if one in self._known}
        return [found for one in folders if (found := rows[one]) is not None]

    def _read(self, folders: Sequence[Path], rows: dict[Path, Row | None]) -> None:
        """Add the rows of the folders that have none yet."""
        todo = iter([one for one in folders if one not in rows])
        answers: _Answers = SimpleQueue()
        reading: dict[Path, Thread] = {}
        self._read_on(todo, answers)
        while len(rows) < len(folders):
            try:
                folder, answer = answers.get(timeout=self._patience_s)
            except Empty:
                stuck = {one: reader for one, reader in reading.items() if one not in rows}
                self._stuck |= stuck
                rows |= {one: _hanging(one) for one in stuck}
                self._read_on(todo, answers)
                continue
            if isinstance(answer, Thread):
                reading[folder] = answer
            else:
                rows[folder] = answer

    def _read_on(self, todo: Iterator[Path], answers: _Answers) -> None:
        def read() -> None:
            for folder in todo:
                answers.put((folder, current_thread()))
                answers.put((folder, self._row(folder)))

        Thread(target=read, daemon=True).start()

    def _row(self, folder: Path) -> Row | None:
        """Return the row of a folder; None if it is no run, or no longer one."""
        try:
            if not run_index.is_run(folder):
                return None
            signature = _signature(folder)
            cached = self._known.get(folder)
            if cached is None or cached[0] != signature or cached[1]["live"]:
                cached = signature, row(run_index.entry_of(folder, run_index.name_of(folder)))
        except OSError:
            return None  # the run was removed just now
        self._known[folder] = cached
        return cached[1]

    def asked(self, asked: Asked) -> list[Row]:
        """Return the rows that a request asks for, in its order."""
        found = [row for row in self.rows() if asked.takes(row)]
        there = [one for one in found if one[asked.column] not in (None, "", [])]
        there.sort(key=lambda one: (one[asked.column], one["time"]), reverse=asked.falling)
        # Rows without a value in this column come last in either order.
        return there + [one for one in found if one[asked.column] in (None, "", [])]


def row(run: run_index.Stored) -> Row:
    """Return the row that the list shows for a run."""
    locks = run.came.locks if run.came else [run.lock]
    page = plainfile.exists(run.folder / "report.html")
    test, time = run.folder.parent.name, run.folder.name
    more = {"verdict": verdict_of(run), "locks": locks, "page": page, "test": test, "time": time}
    return run.to_json() | more


def _hanging(folder: Path) -> Row:
    """Return the row of a folder that cannot be read now; nothing here asks its file system."""
    what, test, time = "its file system does not answer", folder.parent.name, folder.name
    return {
        "run": f"{test}/{time}", "kind": "run", "what": what, "folder": str(folder),
        "valid": None, "broken": [], "live": False, "lock": None, "guard": None, "faults": [],
        "seed": None, "holds": None, "duration_s": None, "began": time, "bytes": 0,
        "problem": what, "verdict": "none", "locks": [], "page": False, "test": test, "time": time,
    }  # fmt: skip


def verdict_of(run: run_index.Stored) -> str:
    """Return the verdict of a run, one of VERDICTS."""
    if run.live:
        return "running"
    if run.problem or run.valid is None:
        return "none"
    return {True: "valid", False: "invalid", "unknown": "unknown"}[run.valid]


def _signature(folder: Path) -> tuple[Any, ...]:
    found = []
    for name in _FILES:
        try:
            stat = (folder / name).stat()
            found.append((stat.st_mtime_ns, stat.st_size))
        except OSError:
            found.append((0, 0))
    return (run_index.is_live(folder), *found)
