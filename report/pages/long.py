"""The page of a long run: its verdict, its violations, and its segments, each with a page."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fencepost import runfiles
from fencepost.report.pages import page
from fencepost.report.stored import ReportError
from fencepost.report.words.questions import headline, ordered, questions, verdict
from fencepost.report.words.settings import again, settings


def render(run: Path) -> Path:
    """Write report.html next to the results.json of a long run; return its path.

    Raises:
        ReportError: its test.json or results.json cannot be read.
        OSError: report.html cannot be written.
    """
    try:
        test, results = runfiles.description(run), runfiles.results(run / runfiles.RESULTS)
    except (OSError, ValueError) as error:
        raise ReportError(
            f"{run}: no report, because a file cannot be read ({error}); "
            "`fencepost analyze` with this folder judges its segments again"
        ) from error
    return page.write(run / "report.html", "long.html", contents(test, results, run))


def contents(test: Mapping[str, Any], results: Mapping[str, Any], run: Path) -> dict[str, Any]:
    """Return the template's data."""
    checkers: Mapping[str, Any] = results.get("checkers") or {}
    answered, valid = questions(checkers), verdict(results.get("valid"))
    return {
        "name": test.get("name", "test"),
        "started": test.get("started", ""),
        "valid": valid,
        "headline": headline(valid, answered),
        "questions": answered,
        "live": bool(results.get("live")),
        "stats": _stats(test, results),
        "evidence": [_evidence(name, row) for name, row in checkers.items() if row.get("evidence")],
        "checkers": _columns(checkers),
        "segments": [{**row, "link": _link(row["segment"])} for row in results.get("segments", ())],
        "settings": settings(test),
        "again": again(test, run.resolve()),
        "notes": list(results.get("notes") or ()),
    }


def _columns(checkers: Mapping[str, Any]) -> list[str]:
    known = ordered(checkers)
    return known + sorted(set(checkers) - set(known))


def _link(segment: int) -> str:
    return f"segments/{segment:04d}/report.html"


def _evidence(name: str, row: Mapping[str, Any]) -> dict[str, Any]:
    pieces = [
        {
            "what": str(piece.get("what", "")),
            "link": _link(piece["segment"]) if isinstance(piece.get("segment"), int) else None,
        }
        for piece in row["evidence"]
    ]
    return {
        "checker": name,
        "valid": verdict(row.get("valid")),
        "summary": str(row.get("summary", "")),
        "pieces": pieces,
    }


def _stats(test: Mapping[str, Any], results: Mapping[str, Any]) -> list[tuple[str, str]]:
    stats = results.get("stats") or {}
    found = [
        ("lock", page.plain((test.get("lock") or {}).get("name"))),
        ("guard", page.plain(test.get("guard"))),
        ("faults", page.plain(test.get("nemesis"))),
        ("seed", page.plain(test.get("seed"))),
        ("duration", f"{float(stats.get('duration_s', 0)):,.0f} s"),
        ("segments", f"{len(results.get('segments') or ()):,}"),
        ("ops", f"{stats.get('ops', 0):,}"),
        ("holds", f"{stats.get('holds', 0):,}"),
    ]
    if broken := results.get("first_violation"):
        found.append(("first violation", f"segment {broken.get('segment')}"))
    return found
