"""The page of one run: the verdict in words, the pictures, the receipts and the spec."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from itertools import zip_longest
from pathlib import Path
from typing import Any

from fencepost.checker.facts.faults import Fault, faults
from fencepost.checker.history.history import History
from fencepost.report.figures.charts import has_tokens, latencies, rates
from fencepost.report.figures.lanes import affected
from fencepost.report.figures.logs import excerpts, moments
from fencepost.report.figures.measures import QUANTILES, summary
from fencepost.report.figures.offsets import offsets
from fencepost.report.figures.overlap_diagram import look
from fencepost.report.figures.sampling import Drawn, Mention, drawn
from fencepost.report.figures.sequence_of_run import sequence_of
from fencepost.report.figures.timeline import timeline
from fencepost.report.pages import page
from fencepost.report.stored import Run, load
from fencepost.report.words.questions import (
    headline,
    ordered,
    question,
    questions,
    untested,
    verdict,
)
from fencepost.report.words.settings import again, settings

Colour = Callable[[str], tuple[str, str] | None]
"""Returns the CSS colours of a family of faults, on a light page and on a dark one."""

FIRST = 3
"""Sentences of evidence shown at once; the rest is folded."""
MOST = 200
"""Largest number of sentences of a checker's evidence, of faults and of scheduled steps on the
page; results.json and test.json have all."""
LONGEST = 200_000
"""Longest part of test.json on the page, in characters."""

_SCENARIO: dict[str, Any] = {
    "name": "",
    "claim": "",
    "source": "",
    "what": "",
    "steps": [],
    "expected": {},
}
_STEP = dict.fromkeys(("at_s", "family", "targets", "duration_s", "arguments"))


def render(
    run: Path,
    colour: Colour = lambda family: None,
    history: History | None = None,
    results: dict[str, Any] | None = None,
) -> Path:
    """Write report.html into the folder of a run; return its path.

    A family of faults that `colour` does not know is grey. Pass `history` and `results` if they are
    already loaded: those of a long run take much time and memory.

    A killed run gets a report too: what was recorded, and that no checker ran.

    Raises:
        ReportError: the folder has no readable test.json.
        OSError: report.html cannot be written.
    """
    found = load(run, history, results)
    return page.write(run / "report.html", "run.html", contents(found, run, colour))


def contents(run: Run, folder: Path, colour: Colour) -> dict[str, Any]:
    """Return the template's data."""
    test, history = run.test, run.history
    results = run.results or {}
    checkers: Mapping[str, Any] = results.get("checkers") or {}
    answered = questions(checkers)
    valid = None if run.results is None else verdict(results.get("valid"))
    evidence = [_evidence(name, checkers[name]) for name in _in_order(checkers)]
    shown = drawn(history, test, list(_mentions(evidence)))
    on, answers = faults(history), shown.recorded.answers
    picture = timeline(shown, test) | latencies(answers, shown.end_ns, shown.focus)
    picture |= rates(shown.recorded.rates) | {"offsets": (set_off := offsets(history))}
    schedule = list(test.get("schedule") or ())
    return {
        "name": test.get("name", "test"),
        "started": test.get("started", ""),
        "valid": valid,
        "headline": headline(valid, answered),
        "untested": untested(checkers),
        "questions": answered,
        "scenario": _scenario(test, checkers),
        "hunt": _hunt(test),
        "schedule": [_STEP | step for step in schedule[:MOST]],
        "more_scheduled": len(schedule[MOST:]),
        "stats": _stats(run, on, shown.recorded.ops),
        "evidence": evidence,
        "look": look(_pieces(checkers), shown.holds, on, test),
        "sequence": sequence_of(run, shown.holds, on, _in_order(checkers)),
        "logs": excerpts(folder, test, moments(_pieces(checkers))),
        "not_set": [node for node in test.get("servers") or () if node not in set_off["nodes"]],
        "apart": _apart(test),
        "timeline": picture,
        "thinned": _thinned(shown, len(picture["acquires"]["rows"])),
        "tokens": has_tokens(picture),
        "voted": bool(picture["votes"]["rows"]),
        "latencies": summary(answers),
        "quantiles": [f"p{percent}" for percent in QUANTILES],
        "faults": [
            {"words": f.what, "nodes": affected(f), "fault": f, "at": _moment(f.start, f.end)}
            for f in _shown_faults(on)
        ],
        "more_faults": len(on[MOST:]),
        "colours": {f.family: both for f in on if (both := colour(f.family))},
        "settings": settings(test),
        "again": again(test, folder.resolve()),
        "work": bool(test.get("work")),
        "problems": run.problems,
        "notes": _notes(run),
        "test_json": _test_json(test),
        "not_checked": dict(test.get("not_checked") or {}),
    }


def _in_order(checkers: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return the checkers that need an explanation (all but a plain true) in the order of the
    cards."""
    order = dict.fromkeys([*ordered(checkers), *checkers])
    return [n for n in order if checkers[n].get("valid") is not True]


def _pieces(checkers: Mapping[str, Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    for name in _in_order(checkers):
        yield from checkers[name].get("evidence") or ()


def _apart(test: Mapping[str, Any]) -> list[str]:
    """Return how well the clocks of clients on other hosts are known, if that was measured."""
    found: Mapping[str, Mapping[str, Any]] = test.get("clocks") or {}
    return [f"{node} ±{clock.get('bound_ns', 0) / 1e6:.3f} ms" for node, clock in found.items()]


def _notes(run: Run) -> list[str]:
    """Return the notes on the run and its history that `untested` does not contain."""
    results = run.results or {}
    notes = [*run.history.notes, *map(str, results.get("notes") or ()), *_lacking(run.test)]
    sentences = " ".join(untested(results.get("checkers") or {}))
    return [note for note in dict.fromkeys(notes) if note not in sentences]


def _lacking(test: Mapping[str, Any]) -> list[str]:
    """Return which faults the nodes could not have, if they were asked and lack any."""
    lacks: Mapping[str, list[str]] = test.get("lacks") or {}
    nodes = dict.fromkeys(node for each in lacks.values() for node in each)
    if not nodes:
        return []
    return [
        f"These faults cannot be injected on {', '.join(nodes)}, whose kernel does not support "
        f"them: {', '.join(lacks)}. They are drawn only on request."
    ]


def _evidence(name: str, row: Mapping[str, Any]) -> dict[str, Any]:
    found = list(row.get("evidence") or ())
    shown = [_sentence(piece) for piece in found[:MOST]]
    return {
        "checker": name,
        "about": question(name),
        "valid": verdict(row.get("valid")),
        "summary": row.get("summary", ""),
        "first": shown[:FIRST],
        "rest": shown[FIRST:],
        "left_out": len(found) - len(shown),
    }


def _mentions(evidence: list[dict[str, Any]]) -> Iterator[Mention]:
    """Return the moments of the evidence: the first of each checker, then the second, ..."""
    pieces = [[*row["first"], *row["rest"]] for row in evidence]
    for turn in zip_longest(*pieces):
        for piece in turn:
            if piece is not None and piece["at"] is not None:
                at = piece["at"]
                yield Mention(at["from"] * 1000, at["until"] * 1000, at["holds"])


def _thinned(shown: Drawn, acquires: int) -> dict[str, Any]:
    """Return how a run too long to draw in full was thinned out; empty for any other."""
    numbers = shown.numbers() | {"acquires": (acquires, len(shown.recorded.answers))}
    if all(n == of for n, of in numbers.values()):
        return {}
    sentences = [f"{n:,} of {of:,} {what}" for what, (n, of) in numbers.items() if of]
    blocks = [end - start for start, end in shown.focus.blocks]
    return {"said": sentences, "block_s": f"{max(blocks, default=0) / 1e9:.1f}"}


def _shown_faults(on: list[Fault]) -> list[Fault]:
    """Return the faults whose receipts the page shows, in order of start.

    At most MOST: first those that were not proved or not healed, then the earliest of the others.
    """
    shown = sorted(on, key=lambda fault: fault.proved and fault.healed)[:MOST]
    return sorted(shown, key=lambda fault: fault.start)


def _test_json(test: Mapping[str, Any]) -> str:
    """Return test.json with as much of its schedule as fits."""
    schedule = list(test.get("schedule") or ())
    shown = {**test, "schedule": schedule[:MOST]} if schedule[MOST:] else test
    text = json.dumps(shown, indent=2, ensure_ascii=False)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}\n... cut off here"


def _sentence(piece: Mapping[str, Any]) -> dict[str, Any]:
    """Return a piece of evidence, and the moment that the timeline shows for it."""
    at = _moment(piece.get("time_ns"), piece.get("until_ns"), piece.get("holds"))
    return {"what": str(piece.get("what", "")), "at": at}


def _moment(time_ns: Any, until_ns: Any, holds: Any = None) -> dict[str, Any] | None:
    """Return a span of the timeline (µs) and the holds to mark in it, or None without a time."""
    if not isinstance(time_ns, int | float):
        return None
    until = until_ns if isinstance(until_ns, int | float) else time_ns
    return {
        "from": round(time_ns / 1000),
        "until": round(until / 1000),
        "holds": [str(name) for name in holds or ()],
    }


def _scenario(test: Mapping[str, Any], checkers: Mapping[str, Any]) -> dict[str, Any]:
    """Return the scenario with every key that the template needs; empty for a test without one."""
    found: dict[str, Any] = test.get("scenario") or {}
    if not found:
        return {}
    expected = {name: verdict(value) for name, value in (found.get("expected") or {}).items()}
    observed = {
        name: verdict(checkers[name].get("valid")) if name in checkers else None
        for name in expected
    }
    outcome = "The outcome is as predicted."
    if untested(checkers):
        outcome = (
            "This run neither confirms nor refutes the prediction, because it did not test all "
            "of it."
        )
    elif observed != expected:
        outcome = "The outcome is not as predicted."
    return (
        _SCENARIO
        | found
        | {
            "expected": expected,
            "observed": observed,
            "outcome": outcome if expected else "",
            "letters": _letters(str(found.get("what", "")), test.get("servers") or []),
        }
    )


def _hunt(test: Mapping[str, Any]) -> dict[str, Any]:
    """Return the story of a simulated run as a list of sentences, its drawing, the comparison with
    a reference lock, and how often real clients showed it again; empty for other runs."""
    found: Mapping[str, Any] = test.get("hunt") or {}
    if not test.get("simulated") or not found:
        return {}
    came = found.get("came")
    real = isinstance(came, list) and len(came) == 2 and all(isinstance(n, int) for n in came)
    # Each sentence is already numbered.
    story = [str(step).partition(". ")[2] for step in found.get("story") or ()]
    return {
        "story": story,
        "drawing": "\n".join(map(str, found.get("drawing") or ())),
        "compared": [str(words) for words in found.get("compared") or ()],
        "came": f"It came again {came[0]} of {came[1]} times." if real and came else "",
    }


def _letters(what: str, servers: list[str]) -> str:
    """Return which servers a schedule means by A, B and C, the names that its author gave them."""
    named = sorted(set(re.findall(r"\b[A-E]\b", what)))
    if "C" not in named:  # "A" alone is an article
        return ""
    pairs = zip("ABCDE", servers, strict=False)
    return ", ".join(f"{letter} is {server}" for letter, server in pairs if letter in named) + "."


def _stats(run: Run, on: list[Fault], ops: int) -> list[tuple[str, str]]:
    """Describe the run in a line: lock, guard, faults and counts."""
    test, stats = run.test, (run.results or {}).get("stats") or {}
    length = stats.get("duration_s", run.history.end_ns / 1e9)
    found = [
        ("lock", page.plain((test.get("lock") or {}).get("name"))),
        ("guard", page.plain(test.get("guard"))),
        ("faults", page.plain(list(dict.fromkeys(fault.family for fault in on)))),
        ("seed", page.plain(test.get("seed"))),
        ("duration", f"{float(length):.1f} s"),
        ("ops", f"{stats.get('ops', ops):,}"),
    ]
    if broken := (run.results or {}).get("first_violation"):
        found.append(("first violation", f"at {broken['time_s']:.3f} s"))
    if "holds" in stats:
        found.append(("holds", f"{stats['holds']:,}"))
    return found
