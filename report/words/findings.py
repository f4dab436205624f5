"""The findings of a matrix, in sentences with their numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from fencepost.checker.checkers import of_time
from fencepost.report.words import cells, leaders
from fencepost.report.words.cells import STATES, between, figure, unseen

_SENTENCES = {"none": "Without faults", "all": "Under all faults together"}
Under = Callable[[str], str]
"""Gives the beginning of a sentence about a fault."""
_LOW = 0.5
"""A lock's availability is a finding below this share of its usual holds per second."""


def headline(rows: Sequence[Mapping[str, Any]]) -> str:
    """Sum up the matrix in one sentence."""
    tested = [row for row in rows if row["sum"]["runs"]]
    if not tested:
        return "Nothing was run yet."
    counts = {name: sum(1 for row in tested if name in row["sum"]["marks"]) for name in STATES}
    parts = [
        f"the service broke its promise in {counts['broken']}",
        f"data was damaged in {counts['damaged']}",
        f"the lock was not available in {counts['unavailable']}",
    ]
    said = [part for part, name in zip(parts, STATES, strict=False) if counts[name]]
    if both := sum(1 for row in tested if _overlaps(row)):
        said.append(f"two leaders worked at once in {both}")
    if not said:
        return f"No violation was seen in {_count(len(tested), 'cell')}."
    return f"Of {_count(len(tested), 'cell')}, {_listed(said)}."


def findings(
    rows: Sequence[Mapping[str, Any]], columns: Mapping[str, Mapping[str, str]]
) -> list[list[dict[str, str]]]:
    """Return the findings, a sentence each, by sort: broken services first, then two leaders at
    work, damaged data, unavailable locks, damage prevented by a guard, slow locks, and cells
    without a violation.

    `columns`: by fault, how a `sentence` about it begins, as matrix.json has it of its families.
    """

    def under(fault: str) -> str:
        sentence = columns.get(fault, {}).get("sentence")
        return sentence or _SENTENCES.get(fault, f"Under {fault}")

    sorts = (_services, _two_at_work, _damages, _absences, _saved, _slow, _kept)
    return [found for sort in sorts if (found := list(sort(rows, under)))]


def _services(rows: Sequence[Mapping[str, Any]], under: Under) -> Iterable[dict[str, str]]:
    """Describe broken services by fault: the guard does not matter to a lock's service."""
    wrong: dict[str, list[str]] = {}
    for fault, mine in _by(_marked(rows, "broken"), "fault").items():
        twice = {
            lock: found
            for lock, row in _by(mine, "lock").items()
            if (found := _pooled(rows, fault, lock, "service"))["count"]
            and any(one["sum"]["violations"]["service"]["count"] for one in row)
        }
        if twice:
            tested = {row["lock"] for row in rows if row["fault"] == fault and row["sum"]["runs"]}
            yield _finding(
                "broken",
                f"{under(fault)}, the service granted a lease twice with {len(twice)} of "
                f"{_count(len(tested), 'lock')}: {_rated(twice)}.",
            )
        for row in mine:
            said = row["sum"]["checkers"]
            named = {name for run in row["runs"] for name in run.get("service", ())}
            for name in sorted(named - {"lease_exclusion", "linearizable", "liveness"}):
                if said.get(name, {}).get("false"):
                    wrong.setdefault(f"{under(fault)}, {name} says no", []).append(row["lock"])
    for what, locks in wrong.items():
        yield _finding("broken", f"{what} of {_listed(list(dict.fromkeys(locks)))}.")


def _two_at_work(rows: Sequence[Mapping[str, Any]], under: Under) -> Iterable[dict[str, str]]:
    """Describe by fault and guard the electors of which two leaders worked at once."""
    for (fault, guard), mine in _grouped(row for row in rows if row["sum"]["leaders"]).items():
        both = [row for row in mine if _overlaps(row)]
        each = [f"{row['lock']} {leaders.after(row['sum']['leaders'])}" for row in both]
        if both:
            yield _finding(
                "believed",
                f"{under(fault)}, guard {guard}, two leaders worked at once with {len(both)} of "
                f"{_count(len(mine), 'elector')}: {_listed(each)}.",
            )


def _overlaps(row: Mapping[str, Any]) -> int:
    """Return how often two leaders worked at once in a cell; 0 for a lock."""
    led = row["sum"]["leaders"]
    return int(led["overlaps"]["count"]) if led else 0


def _damages(rows: Sequence[Mapping[str, Any]], under: Under) -> Iterable[dict[str, str]]:
    """Describe damage by fault and guard; the service may have kept its promise."""
    for (fault, guard), mine in _grouped(_marked(rows, "damaged")).items():
        tested = [
            row for row in rows if (row["fault"], row["guard"]) == (fault, guard) and row["runs"]
        ]
        kept = [row for row in mine if "broken" not in row["sum"]["marks"]]
        rates = {row["lock"]: {**row["sum"]["violations"]["data"], "blind": False} for row in mine}
        yield _finding(
            "damaged",
            f"{under(fault)}, guard {guard}, data was damaged with {len(mine)} of "
            f"{_count(len(tested), 'lock')}{_although(len(kept), len(mine))}: {_rated(rates)}.",
        )


def _although(kept: int, of: int) -> str:
    if not kept:
        return ""
    if kept == of:
        return (
            ", though no service broke its promise"
            if of > 1
            else (", though the service kept its promise")
        )
    return f", of which {kept} kept {'its' if kept == 1 else 'their'} promise"


def _absences(rows: Sequence[Mapping[str, Any]], under: Under) -> Iterable[dict[str, str]]:
    for fault, mine in _by(_marked(rows, "unavailable"), "fault").items():
        late = [row for row in mine if _late(row)]
        never = [row for row in mine if not row["sum"]["holds_a_second"]]
        if late:
            runs = sum(map(_late, late))
            of = sum(row["sum"]["runs"] for row in late)
            yield _finding(
                "unavailable",
                f"{under(fault)}, the lock was not granted again in time in {runs} of "
                f"{_count(of, 'run')} of {_locks(late)}.",
            )
        if never:
            words = f"{under(fault)}, the lock was never granted: {_locks(never)}."
            yield _finding("unavailable", words)


def _late(row: Mapping[str, Any]) -> int:
    """Return in how many runs something came too late or never."""
    found = row["sum"]["checkers"]
    return max((found[name].get("false", 0) for name in found if of_time(name)), default=0)


def _saved(rows: Sequence[Mapping[str, Any]], under: Under) -> Iterable[dict[str, str]]:
    """Describe where two clients believed and the data survived."""
    for (fault, guard), mine in _grouped(_marked(rows, "believed")).items():
        believed = sum(row["sum"]["violations"]["clients"]["count"] for row in mine)
        holds = sum(row["sum"]["holds"] for row in mine)
        yield _finding(
            "believed",
            f"{under(fault)}, guard {guard}, a second client believed in "
            f"{_count(believed, 'hold')} of {_locks(mine)}; no damage was {unseen(holds)}.",
        )


def _slow(rows: Sequence[Mapping[str, Any]], under: Under) -> Iterable[dict[str, str]]:
    """Describe by fault the locks that lost most of their grants."""
    shares = ((row, row["sum"]["availability"]) for row in rows if row["fault"] != "none")
    low = [row for row, share in shares if share is not None and share < _LOW]
    for fault, mine in _by(low, "fault").items():
        least = min(mine, key=lambda row: row["sum"]["availability"])
        longest = max(row["sum"]["longest_s"] for row in mine)
        yield _finding(
            "slow",
            f"{under(fault)}, {_locks(mine)} gave less than half of the usual holds a "
            f"second, {least['lock']} {100 * least['sum']['availability']:.0f} %; the longest time "
            f"without a grant was {longest:.1f} s.",
        )


def _kept(rows: Sequence[Mapping[str, Any]], under: Under) -> Iterable[dict[str, str]]:
    """Describe by fault and guard where no violation was seen, and in how many holds."""
    kept = [row for row in rows if row["sum"]["state"] == "kept"]
    for (fault, guard), mine in _grouped(kept).items():
        holds = sum(row["sum"]["holds"] for row in mine)
        yield _finding(
            "kept",
            f"{under(fault)}, guard {guard}, no violation was {unseen(holds)}: {_locks(mine)}.",
        )


def _finding(state: str, text: str) -> dict[str, str]:
    sign = STATES[state].sign if state in STATES else ""
    return {"state": state, "sign": sign, "text": text}


def _marked(rows: Iterable[Mapping[str, Any]], mark: str) -> list[Mapping[str, Any]]:
    return [row for row in rows if mark in row["sum"]["marks"]]


def _grouped(
    rows: Iterable[Mapping[str, Any]],
) -> dict[tuple[str, str], list[Mapping[str, Any]]]:
    groups: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for row in rows:
        groups.setdefault((row["fault"], row["guard"]), []).append(row)
    return groups


def _by(rows: Iterable[Mapping[str, Any]], name: str) -> dict[str, list[Mapping[str, Any]]]:
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        groups.setdefault(row[name], []).append(row)
    return groups


def _pooled(
    rows: Iterable[Mapping[str, Any]], fault: str, lock: str, question: str
) -> dict[str, Any]:
    """Return the rate of a lock under a fault with all guards together."""
    runs = [
        run
        for row in rows
        if (row["fault"], row["lock"]) == (fault, lock)
        for run in row["runs"]
        if not run.get("crashed")
    ]
    return cells.rated(runs, question)


def _rated(found: Mapping[str, Mapping[str, Any]]) -> str:
    """List locks with their rates: the first and the last of many, and all of a few."""
    names = sorted(found, key=lambda lock: found[lock]["per_1000"] or 0.0, reverse=True)
    if len(names) > 3:
        return f"from {_rate(names[-1], found)} to {_rate(names[0], found)}"
    return _listed([_rate(lock, found) for lock in names])


def _rate(lock: str, found: Mapping[str, Mapping[str, Any]]) -> str:
    rate = found[lock]
    blind = ", and reports no deadline" if rate["blind"] else ""
    return f"{lock} {figure(rate['per_1000'] or 0.0)} per 1,000 holds ({between(rate)}{blind})"


def under(fault: str) -> str:
    """Return a column as the begin of a sentence."""
    return _SENTENCES.get(fault, f"Under {fault}")


def _locks(rows: Sequence[Mapping[str, Any]]) -> str:
    names = list(dict.fromkeys(row["lock"] for row in rows))
    return _listed(names) if len(names) < 5 else f"{len(names)} locks"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def _listed(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
