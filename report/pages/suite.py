"""The page of a suite: published outcomes next to observed ones.

A scenario has an outcome, a rate a figure, and costs an order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from fencepost.report import campaign_files
from fencepost.report.pages import page
from fencepost.report.words import intervals
from fencepost.report.words.cells import figure
from fencepost.report.words.intervals import not_seen
from fencepost.report.words.questions import ordered, question, verdict
from fencepost.report.words.settings import named_versions


def read(folder: Path) -> list[dict[str, Any]]:
    """Read the entries of the suite in this folder that have run, each with its outcome.

    Raises:
        ReportError: there is no suite in it.
    """
    stored = campaign_files.read(folder, "suite")
    with page.usable(folder, "suite"):
        return [entry(row) for row in stored.rows if row["runs"]]


def entry(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return an entry with the outcome of its `runs`, of which it has at least one."""
    last = row["runs"][-1]
    if "rate" in row:
        return _rate_of(row)
    found = {**{name: row[name] for name in row if name != "runs"}, **last}
    if why := last.get("crashed"):
        found |= {"run": "", "observed": {}, "as_expected": False, "why": f"run: {why}"}
    return found


def _rate_of(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a rate over the runs with proof of their faults. Each of its runs needs proof."""
    runs = [
        {"counts": {}, "why": f"run: {run['crashed']}", **run} if run.get("crashed") else run
        for run in row["runs"]
    ]
    missed = [run["why"] for run in runs if run.get("why")]
    words = f"{len(missed)} of {len(runs)} runs could not be counted: {missed[0]}" if missed else ""
    shares = row["rate"].get("shares") or intervals.summed(run["counts"] for run in runs)
    rate = {**row["rate"], "runs": runs, "shares": shares}
    first = {"run": "", "versions": {}, **runs[0]}
    more = {"rate": rate, "observed": {}, "as_expected": not missed, "why": words}
    return {**first, **{name: row[name] for name in row if name != "runs"}, **more}


def carried_out(row: Mapping[str, Any]) -> bool:
    """Return whether the scenario of an entry was carried out as scheduled. If it was not, its
    outcome is unknown."""
    return bool(row.get("carried_out", True))


def render(folder: Path) -> Path:
    """Write report.html into the folder of a suite; return its path.

    Raises:
        ReportError: there is no suite in it.
        OSError: report.html cannot be written.
    """
    entries = read(folder)
    with page.usable(folder, "suite"):
        return page.write(folder / "report.html", "suite.html", contents(_name(folder), entries))


def _name(folder: Path) -> str:
    """Return the suite's name and time, as in the store: results/<suite>/<UTC time>."""
    place = folder.resolve()
    return f"{place.parent.name}, {place.name}"


def contents(name: str, entries: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the template's data."""
    counted = [entry for entry in entries if entry.get("rate")]
    costs = [entry for entry in entries if entry.get("cost")]
    played = [entry for entry in entries if entry not in counted and entry not in costs]
    scripted = [_row(entry) for entry in played if entry.get("expected")]
    free = [_row(entry) for entry in played if not entry.get("expected")]
    return {
        "name": name,
        "headline": " ".join(
            [
                *([headline(scripted)] if scripted or not counted + costs else []),
                *_counted(counted),
                *([_measured(costs)] if costs and not scripted else []),
            ]
        ),
        "as_published": all(row["as_expected"] for row in scripted) if scripted else None,
        "rates": [_rate(entry) for entry in counted],
        "costs": [_cost(entry) for entry in costs],
        "scenarios": _scenarios(scripted),
        "scripted_checkers": _columns(scripted),
        "free": free,
        "free_checkers": _columns(free),
        "about_checker": {
            name: question(name) for row in [*scripted, *free] for name in row["cells"]
        },
    }


def headline(scripted: list[dict[str, Any]]) -> str:
    """State in one sentence whether every scenario came out as published."""
    if not scripted:
        return "No scenario with a published outcome was run."
    names = list(dict.fromkeys(row["scenario"] for row in scripted))
    missed = list(dict.fromkeys(row["scenario"] for row in scripted if not carried_out(row)))
    odd = list(
        dict.fromkeys(
            row["scenario"] for row in scripted if carried_out(row) and not row["as_expected"]
        )
    )
    late = f" Not carried out in time: {', '.join(missed)}." if missed else ""
    runs = f"{len(scripted)} run{'s' if len(scripted) > 1 else ''}"
    if missed and not odd:
        good = len(names) - len(missed)
        return f"{good} of {len(names)} scenarios had the published outcome, in {runs}.{late}"
    if not odd:
        all_of = f"All {len(names)} scenarios" if len(names) > 1 else "The one scenario"
        return f"{all_of} had the published outcome, in {runs}."
    return (
        f"{len(odd)} of {len(names)} scenarios did not have the published outcome: "
        f"{', '.join(odd)}.{late}"
    )


def _counted(entries: Sequence[Mapping[str, Any]]) -> list[str]:
    runs = sum(len(entry["rate"]["runs"]) for entry in entries)
    rates = f"{len(entries)} rates were" if len(entries) > 1 else "One rate was"
    return [f"{rates} counted, over {runs} runs."] if entries else []


def _measured(entries: list[dict[str, Any]]) -> str:
    locks = list(dict.fromkeys(row["lock"] for one in entries for row in one["cost"]["locks"]))
    slower = "each other is" if all(one.get("as_expected") for one in entries) else "not all are"
    return f"The costs of {len(locks)} locks were measured: {slower} slower than {locks[0]}."


def tally(rows: Sequence[Mapping[str, Any]]) -> str:
    """How many runs ended as expected, and how many rates were counted, in a sentence."""
    expected = [row for row in rows if row["expected"] or "cost" in row]
    good = sum(1 for row in expected if row["as_expected"])
    missed = sum(1 for row in expected if not carried_out(row))
    rates = [row for row in rows if "rate" in row]
    words = [f"{good} of {len(expected)} came out as published."] if expected or not rates else []
    words += [f"{missed} could not be carried out in time."] * bool(missed)
    return " ".join([*words, *_counted(rates)])


_SHARES = {
    "service": "The service broke its promise in",
    "clients": "Two clients believed in",
    "data": "The data was damaged in",
    "updates": "Lost were",
}


def shares(rate: Mapping[str, Any]) -> list[str]:
    """Describe each count in a sentence, with the 95 % interval."""
    return [_share(name, found) for name, found in rate["shares"].items()]


def _share(name: str, found: Mapping[str, Any]) -> str:
    count, of, low, high = (found[key] for key in ("count", "of", "low", "high"))
    if name == "updates":
        share = f"{_percent(count / of)} ({_percent(low)} to {_percent(high)})" if of else "none"
        return f"{_SHARES[name]} {count:,} of {of:,} acknowledged updates: {share}."
    if not count:
        most = figure(1000 * not_seen(of))
        return f"{_SHARES[name]} none of {of:,} holds (at most {most} per 1,000, rule of three)."
    per = f"{figure(1000 * count / of)} per 1,000 ({figure(1000 * low)} to {figure(1000 * high)})"
    return f"{_SHARES[name]} {count:,} of {of:,} holds: {per}."


def _percent(share: float) -> str:
    return f"{figure(100 * share)} %"


def _rate(entry: Mapping[str, Any]) -> dict[str, Any]:
    rate = entry["rate"]
    runs = [
        {
            "seed": run.get("seed"),
            "link": page.report_of(run.get("run")),
            "why": run.get("why", ""),
            "counts": [f"{count:,} of {of:,}" for count, of in (run.get("counts") or {}).values()],
        }
        for run in rate["runs"]
    ]
    said = {"shares": shares(rate), "published": rate.get("published") or "", "runs": runs}
    return _row(entry) | said


def _cost(entry: Mapping[str, Any]) -> dict[str, Any]:
    rows = entry["cost"]["locks"]
    base = rows[0]["ms"] or 0.0
    locks = [
        {
            "lock": row["lock"],
            "ms": "none" if row["ms"] is None else f"{row['ms']:.3g}",
            "ratio": f"{row['ms'] / base:.1f}" if row["ms"] and base else "",
            "trips": f"{row['trips']:g}",
            "rate": f"{row['rate']:,.0f}" if row.get("rate") else "",
        }
        for row in rows
    ]
    return _row(entry) | {"locks": locks, "published": entry["cost"].get("published") or ""}


def _row(entry: Mapping[str, Any]) -> dict[str, Any]:
    expected: Mapping[str, Any] = entry.get("expected") or {}
    observed: Mapping[str, Any] = entry.get("observed") or {}
    cells = {
        name: {
            "expected": verdict(expected[name]) if name in expected else None,
            "observed": verdict(observed[name]) if name in observed else None,
        }
        for name in dict.fromkeys([*expected, *observed])
    }
    return {
        "test": entry.get("test", ""),
        "scenario": str(entry.get("scenario") or entry.get("test") or "unnamed"),
        "guard": page.plain(entry.get("guard")),
        "claim": entry.get("claim") or "",
        "source": entry.get("source") or "",
        "what": entry.get("what") or "",
        "why": entry.get("why") or "",
        "election": entry.get("election") or "",
        "link": page.report_of(entry.get("run")),
        "as_expected": bool(entry.get("as_expected")),
        "carried_out": carried_out(entry),
        "versions": named_versions(entry.get("versions") or {}),
        "cells": cells,
    }


def _scenarios(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Group the runs of each scenario, with their common values once."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault(row["scenario"], []).append(row)
    return [
        {
            "name": name,
            "what": list(dict.fromkeys(row["what"] for row in runs if row["what"])),
            "versions": list(dict.fromkeys(said for row in runs for said in row["versions"])),
            "claims": list(dict.fromkeys(row["claim"] for row in runs if row["claim"])),
            "sources": list(dict.fromkeys(row["source"] for row in runs if row["source"])),
            "runs": runs,
        }
        for name, runs in groups.items()
    ]


def _columns(rows: list[dict[str, Any]]) -> list[str]:
    """Return the checkers that any row names, in the order of the design's table."""
    named_versions = {name for row in rows for name in row["cells"]}
    known = ordered(named_versions)
    return known + sorted(named_versions - set(known))
