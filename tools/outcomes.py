"""The results of suites as rows of a generated table: docs/claims.md."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cells import Rows, code

from fencepost.checker.checkers import CHECKERS
from fencepost.harness.campaigns.bench import BASELINE
from fencepost.report.pages import suite as suite_page
from fencepost.report.words.cells import figure
from fencepost.report.words.settings import named_versions
from fencepost.workloads.scenarios.claim import EXPLORATION
from fencepost.workloads.scenarios.claims import CLAIMS
from fencepost.workloads.scenarios.registry import SUITES
from fencepost.workloads.scenarios.suite import Cost, Entry, TimedRun


def outcomes(kept: Sequence[Mapping[str, Any]]) -> Rows:
    """Return the results of each entry of a suite that expects or counts something."""
    yield "claim", "entry", "guard", "expected", "seen", "on", "again"
    entries = [
        (suite.name, entry)
        for suite in SUITES.values()
        for entry in suite.entries
        if EXPLORATION not in entry.claims
    ]
    for suite, entry in sorted(entries, key=lambda found: _place(found[1])):
        guard = "" if isinstance(entry, Cost) else entry.guard
        rows = [row for row in kept if _is_of(row, suite, entry)]
        versions = dict.fromkeys(
            one for row in rows for one in named_versions(row.get("versions") or {})
        )
        again = f"fencepost suite {suite} --only {entry.name}"
        yield (
            entry.claim, f"{suite}: {code(entry.name)}", guard, _expected(entry),
            _seen(rows).replace("|", "/"), ", ".join(versions), code(again),
        )  # fmt: skip


def _is_of(row: Mapping[str, Any], suite: str, entry: Entry) -> bool:
    """Return whether this was stored for the entry, with its current expectation."""
    if (row["suite"], row["scenario"]) != (suite, entry.name):
        return False
    if isinstance(entry, Cost):
        return True
    if row["guard"] != entry.guard:
        return False
    kept = row.get("expected", {})
    if isinstance(entry, TimedRun) and entry.calm:
        # A checker that is newer than the run, or gone, does not affect the other verdicts.
        ours = {name: valid for name, valid in kept.items() if name in CHECKERS}
        return bool(ours) and ours == {name: CHECKERS[name].control for name in ours}
    return bool(kept == dict(entry.expected))


def _place(entry: Entry) -> tuple[int, str]:
    """Return the entry's position: that of the first of its claims; controls at the end."""
    return list(CLAIMS).index(entry.claims[0]), entry.claim


def _expected(entry: Entry) -> str:
    if isinstance(entry, Cost):
        return f"each slower than {code(BASELINE)}. {entry.published}"
    if isinstance(entry, TimedRun) and entry.rate:
        return entry.rate.published
    calm = isinstance(entry, TimedRun) and entry.calm
    return _verdicts(entry.expected) if entry.expected or calm else "nothing: explored"


def _verdicts(valid: Mapping[str, Any]) -> str:
    short = {False: "F", "unknown": "unknown"}
    odd = [f"{code(name)} {short[v]}" for name, v in valid.items() if v is not True]
    return ", ".join(odd) + "; all else T" if odd else "all T"


def _seen(rows: Sequence[Mapping[str, Any]]) -> str:
    """Describe the results: of a scenario, how many runs were as expected, and the others; without
    an expectation, the verdicts of each run; of rates and costs, the figures."""
    if not rows:
        return "no run kept yet"
    if "observed" in rows[0] and "expected" not in rows[0]:
        return ". ".join(f"Seed {row['seeds'][0]}: {_verdicts(row['observed'])}" for row in rows)
    if "expected" not in rows[0]:
        return " ".join(map(_figures, rows))
    good = sum(row["as_expected"] for row in rows)
    odd = [f"Seed {row['seeds'][0]}: {row['why']}" for row in rows if not row["as_expected"]]
    seeds = ", ".join(str(row["seeds"][0]) for row in rows)
    summary = f"as expected, {good} of {len(rows)} runs (seed{'s' * (len(rows) > 1)} {seeds})"
    return ". ".join([summary, *odd])


def _figures(row: Mapping[str, Any]) -> str:
    if "rate" in row:
        over = f"Seeds {row['seeds'][0]} to {row['seeds'][-1]}:"
        return " ".join([over, *suite_page.shares(row["rate"]), row.get("why", "")]).strip()
    base, *others = row["cost"]["locks"]
    costs = [_cost(base), *(f"{_cost(o)}, {figure(o['ms'] / base['ms'])} times" for o in others)]
    return f"{row['date']}: {'; '.join(costs)}."


def _cost(lock: Mapping[str, Any]) -> str:
    rate = f", {lock['rate']:,.0f} a second" if lock.get("rate") else ""
    return f"{code(lock['lock'])} {lock['ms']:.3g} ms in {lock['trips']:g} round trips{rate}"
