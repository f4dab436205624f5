"""The figures of electors in a cell of a matrix or a sweep: overlaps of work, and take-overs.

A run has them from facts/reigns.py. A cell adds up its runs. The share of changes of leader after
which two worked at once has the interval of a share. A time has the median over the runs, or over
all take-overs after one cause, with the interval of a median, which exists from six values on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import inf
from typing import Any

from fencepost.checker.verdict import count
from fencepost.report.words.intervals import median, not_seen, share

CAUSES = ("resign", "exit", "kill", "cut", "pause", "fault", "no cause")
"""Causes of a change of leader (checker/facts/reigns.py), in the order of tables."""
_TIMES = ("overlap_longest_s", "overlap_total_s", "without_leader_s")


def summed(runs: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """Sum up the figures of these runs; None if they are of a lock."""
    led = [run["leaders"] for run in runs if run.get("leaders")]
    if not led:
        return None
    changes = sum(max(one["reigns"] - 1, 0) for one in led)
    took = {
        cause: [time_s for one in led for time_s in one["took_s"].get(cause, ())]
        for cause in CAUSES
    }
    return {
        "changes": changes,
        "overlaps": _rated(sum(one["overlaps"] for one in led), changes),
        **{name: _times([one[name] for one in led]) for name in _TIMES},
        "clock_error_s": max(one["clock_error_s"] for one in led),
        "take_over_s": {cause: _times(times) for cause, times in took.items() if times},
        "changes_without_cause": sum(one["changes_without_cause"] for one in led),
        "beats_after_stopped": sum(one["beats_after_stopped"] for one in led),
    }


def _rated(overlaps: int, changes: int) -> dict[str, Any]:
    """Return how often two worked at once, per 1,000 changes of leader, with the 95 % interval."""
    low, high = share(min(overlaps, changes), changes)
    return {
        "count": overlaps,
        "of": changes,
        "per_1000": 1000 * overlaps / changes if changes else None,
        "low": 1000 * low if changes else None,
        "high": 1000 * high if changes else None,
        "at_most": 1000 * not_seen(changes) if changes and not overlaps else None,
    }


def _times(times_s: Sequence[float]) -> dict[str, Any]:
    """Return the median of some times with its interval, if there is one, and the longest."""
    middle, low, high = median(times_s)
    bounded = high != inf
    return {
        "count": len(times_s),
        "median": round(middle, 6),
        "low": low if bounded else None,
        "high": high if bounded else None,
        "longest": max(times_s),
    }


def words(found: Mapping[str, Any]) -> str:
    """Describe the overlaps of a cell in a sentence."""
    changes, overlaps = found["changes"], found["overlaps"]
    if not changes:
        return "The leader never changed."
    if not overlaps["count"]:
        return (
            f"No two leaders worked at once in {count(changes, 'change')} of leader (95 %: at "
            f"most {_percent(overlaps['at_most'])}, by the rule of three)."
        )
    return f"Two leaders worked at once {after(found)}."


def after(found: Mapping[str, Any]) -> str:
    """Return for example 'after 3 of 20 changes of leader (3.2 % to 38 %), for at most 1.23 s'."""
    longest = seconds(found["overlap_longest_s"]["longest"])
    return f"after {how_often(found['overlaps'], ' changes of leader')}, for at most {longest}"


def how_often(overlaps: Mapping[str, Any], noun: str = "") -> str:
    """Return for example '3 of 20 (3.2 % to 38 %)'."""
    often = f"{overlaps['count']} of {overlaps['of']}{noun}"
    if not overlaps["of"]:
        return often
    return f"{often} ({_percent(overlaps['low'])} to {_percent(overlaps['high'])})"


def spread(times: Mapping[str, Any]) -> str:
    """Return for example '1.20 s (0.900 to 1.50), longest 2.00, of 12'."""
    said = seconds(times["median"])
    if times["count"] == 1:
        return said
    if times["longest"]:
        if times["high"] is not None:
            said += f" ({_figure(times['low'])} to {_figure(times['high'])})"
        said += f", longest {_figure(times['longest'])}"
    return f"{said}, of {times['count']}"


def seconds(time_s: float) -> str:
    """Return for example '0.012 s', '1.23 s' or '12.3 s'."""
    return f"{_figure(time_s)} s"


def _figure(time_s: float) -> str:
    return f"{time_s:.{3 if time_s < 1 else 2 if time_s < 10 else 1}f}" if time_s else "0"


def _percent(per_1000: float) -> str:
    return f"{per_1000 / 10:.2g} %" if per_1000 < 995 else "100 %"


def causes(found: Iterable[Mapping[str, Any] | None]) -> list[str]:
    """Return the causes of changes of leader in any of these cells."""
    seen = {cause for one in found if one for cause in one["take_over_s"]}
    return [cause for cause in CAUSES if cause in seen]


def plain(found: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the figures as plain values, for a row of a table; none for a lock."""
    if not found:
        return {}
    rows: dict[str, Any] = {
        f"leader_{name}": found[name]
        for name in ("changes", "changes_without_cause", "beats_after_stopped", "clock_error_s")
    }
    rows |= {f"leader_overlaps_{name}": value for name, value in found["overlaps"].items()}
    took = {f"take_over_{cause.replace(' ', '_')}_s": found["take_over_s"].get(cause)
            for cause in CAUSES}  # fmt: skip
    times = {f"leader_{name}": found[name] for name in _TIMES} | took
    for name, one in times.items():
        for part in ("count", "median", "low", "high", "longest"):
            rows[f"{name}_{part}"] = one[part] if one else None
    return rows
