"""The segments of a long run, and the sum of their verdicts: its results.json and its page.

    RUN/segments/0001/    the first segment, a folder like that of a short run

The verdict of the run is the worst of its segments, for each checker and in total.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fencepost.checker.verdict import Valid, Verdict, count, noted, worst
from fencepost.harness.errors import BadArguments
from fencepost.harness.judge.judge import ENDED_FROM_OUTSIDE, GOING_ON, Outcome, judge
from fencepost.harness.judge.judge_process import Found
from fencepost.harness.judge.reanalyze import rejudge
from fencepost.harness.locked import is_live
from fencepost.harness.results import results
from fencepost.report.pages import long as report
from fencepost.runfiles import SCHEMA

_PIECES = 20
"""The most pieces of evidence per checker in the sum; each segment has all of its own."""
_NOTES = 20
_NAME = re.compile("[0-9]{4,9}")
_SUMS = ("ops", "holds", "duration_s")
_NAMED = 10
"""The most segments that a summary names."""


def judge_run(run: Path) -> Outcome:
    """Judge a stored run again, each segment of a long one in turn.

    Raises:
        BadArguments: a file of it cannot be read, or it has no segment yet.
        HistoryError: history.jsonl is no history.
    """
    if not results.is_long(run):
        return judge(run)
    found = Sum(run, results.read_test(run).get("time_s", 0.0))
    stored = [one for one in _segments(run) if (one / "history.jsonl").is_file()]
    if not stored:
        raise BadArguments(f"{run} has no segment with a history yet")
    rejudge(stored, found.add)
    # Checked after judging: a run that has ended meanwhile has more facts, and stays as it is.
    live = is_live(run / results.SEGMENTS)
    before = results.of_ended(run)
    if live:
        found.notes.append(GOING_ON)
    else:
        found.notes += [ENDED_FROM_OUTSIDE] if before is None else before.get("run_notes", [])
    return found.write(live)


def _segments(run: Path) -> list[Path]:
    """Return the folders of a long run's segments, in order.

    Raises:
        BadArguments: one is a symbolic link: its verdict would be written to another folder.
    """
    place = run / results.SEGMENTS
    found = [one for one in place.iterdir() if _NAME.fullmatch(one.name)]
    for one in (place, *found):
        if one.is_symlink():
            raise BadArguments(
                f"{one} is a symbolic link, so that verdicts would be written to another folder: "
                "check who made it, and replace it by a copy of the folder"
            )
    return sorted(found, key=lambda one: int(one.name))


def write_report(run: Path) -> Path:
    """Write the page of a long run from its results.json, and return its path."""
    return report.render(run)


class Sum:
    """The results of a long run, segment by segment; `notes` are errors of the run itself.

    time_s: the planned length of the run.
    """

    def __init__(self, run: Path, time_s: float) -> None:
        self._run, self._time_s = run, time_s
        self.notes: list[str] = []
        self._rows: list[dict[str, Any]] = []
        self._checkers: dict[str, _Checker] = {}
        self._said: list[str] = []
        self._by_f: dict[str, Counter[str]] = {}

    def add(self, folder: Path, found: Found) -> None:
        """Add one segment's results, and write those of the run so far."""
        number = int(folder.name)
        checkers: Mapping[str, Any] = found.get("checkers") or {}
        for name, verdict in checkers.items():
            self._checkers.setdefault(name, _Checker()).add(number, verdict)
        stats = found.get("stats") or {}
        for f, counts in (stats.get("by_f") or {}).items():
            self._by_f.setdefault(f, Counter(ok=0, fail=0, info=0)).update(counts)
        self._rows.append(
            {
                "segment": number,
                "valid": found.get("valid", "unknown"),
                "checkers": {name: verdict.get("valid") for name, verdict in checkers.items()},
                "duration_s": stats.get("duration_s", 0.0),
                "ops": stats.get("ops", 0),
                "holds": stats.get("holds", 0),
                "faults": len(found.get("faults") or ()),
                "first_violation": found.get("first_violation"),
            }
        )
        self._said += [f"Segment {number}: {note}" for note in found.get("run_notes") or ()]
        if is_live(self._run / results.SEGMENTS):
            self.write(live=True)

    def write(self, live: bool) -> Outcome:
        """Write results.json and report.html of the run so far; return the outcome."""
        self._rows.sort(key=lambda row: row["segment"])
        many = len(self._rows)
        verdicts = {name: one.verdict(many) for name, one in self._checkers.items()}
        if not verdicts:
            verdicts["faults"] = Verdict("unknown", "No segment was judged.")
        if self.notes:
            of_segments = [verdicts["run"].summary] if "run" in verdicts else []
            verdicts["run"] = Verdict("unknown", " ".join([*self.notes, *of_segments]))
        said: list[Valid] = ["unknown"] if self.notes else []
        valid = worst([*said, *(row["valid"] for row in self._rows)])
        test = results.read_test(self._run)
        broken = next((row for row in self._rows if row["first_violation"]), None)
        found = {
            "schema": SCHEMA,
            "test": test.get("name", self._run.name),
            "valid": valid,
            "seed": test.get("seed"),
            "checkers": {name: verdict.to_json() for name, verdict in verdicts.items()},
            "faults": [],
            "first_violation": broken
            and {**broken["first_violation"], "segment": broken["segment"]},
            "stats": {name: sum(row[name] for row in self._rows) for name in _SUMS}
            | {"by_f": self._by_f},
            "segments": self._rows,
            "notes": [*self.notes, *_most(self._said)],
            "run_notes": self.notes,
            "live": live,
        }
        results.write(self._run / "results.json", found)
        write_report(self._run)
        return Outcome(self._run, valid, verdicts, found)


def _most(said: list[str]) -> list[str]:
    more = len(said) - _NOTES
    return [*said[:_NOTES], f"{count(more, 'more note')} of segments."] if more > 0 else said


class _Checker:
    """Return the verdict of one checker on all segments."""

    def __init__(self) -> None:
        self._of: dict[Valid, list[int]] = {}
        self._first: dict[Valid, str] = {}
        self._evidence: list[dict[str, Any]] = []
        self._untested: list[set[str]] = []
        # Keep the details that are flags, and add up the counts (of fencing: grants, writes).
        self._kept: dict[str, bool] = {}
        self._counts: dict[str, int] = {}

    def add(self, number: int, verdict: Mapping[str, Any]) -> None:
        valid: Valid = verdict.get("valid", "unknown")
        self._of.setdefault(valid, []).append(number)
        self._first.setdefault(valid, f"Segment {number}: {verdict.get('summary', '')}")
        self._untested.append(set(map(str, verdict.get("untested") or ())))
        for name, value in verdict.items():
            if name != "valid" and isinstance(value, bool):
                self._kept[name] = self._kept.get(name, True) and value
            elif isinstance(value, int) and not isinstance(value, bool):
                self._counts[name] = self._counts.get(name, 0) + value
        if valid is False:
            room = _PIECES - len(self._evidence)
            for piece in (verdict.get("evidence") or ())[:room]:
                what = f"Segment {number}: {piece.get('what', '')}"
                self._evidence.append({"what": what, "segment": number})

    def verdict(self, many: int) -> Verdict:
        """Return the worst verdict, with the segments that have it."""
        valid = worst(self._of)
        of = self._of[valid]
        if valid is True:
            summary = f"In all of {count(len(of), 'segment')}."
            if len(of) < many:
                summary = f"In the {count(len(of), 'segment')} of {many} in which it applies."
        else:
            named = ", ".join(map(str, of[:_NAMED])) + (", ..." if of[_NAMED:] else "")
            what = "Broken" if valid is False else "Unknown"
            summary = f"{what} in {len(of)} of {count(many, 'segment')} ({named}). "
            summary += self._first[valid]
        # A feature that one segment tested was tested.
        untested = sorted(set.intersection(*self._untested)) if self._untested else []
        details: dict[str, Any] = {**self._counts, **self._kept}
        if untested:
            details["untested"] = untested
        return Verdict(valid, noted(summary, untested), self._evidence, details)
