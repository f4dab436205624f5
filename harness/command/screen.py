"""What a person sees while a command runs, and after it."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from fencepost.checker.verdict import Valid
from fencepost.harness.run.run import Outcome, Progress, Status
from fencepost.nemesis.families import Family
from fencepost.report.bench import COLUMNS
from fencepost.workloads.locks.locktype import LockType
from fencepost.workloads.resources.resource import Guard

CONSOLE = Console(highlight=False)
if not CONSOLE.is_terminal:
    # A log has no width: tables keep theirs.
    CONSOLE = Console(highlight=False, width=140)
_LINE_EVERY_S = 5.0
_STYLE: dict[Valid, str] = {True: "green", False: "red", "unknown": "yellow"}


def say(text: str) -> None:
    CONSOLE.print(text, style="dim", markup=False, soft_wrap=True)


def word(valid: Valid) -> str:
    return {True: "valid", False: "INVALID", "unknown": "unknown"}[valid]


def _line(title: str, status: Status) -> str:
    on = f"  faults on: {'; '.join(status.on)}" if status.on else ""
    return (
        f"{title}  {status.elapsed_s:5.1f} s  {status.phase}  {status.ops} events  "
        f"{status.holds} holds{on}"
    )


@contextmanager
def progress(title: str) -> Iterator[Progress]:
    """Shows a run's status: one line that changes on a terminal, a line now and then elsewhere."""
    if CONSOLE.is_terminal:
        with Live(console=CONSOLE, refresh_per_second=4, transient=True) as live:
            yield lambda status: live.update(
                Text(_line(title, status), style="cyan", overflow="ellipsis", no_wrap=True)
            )
        return
    shown = time.monotonic()

    def tell(status: Status) -> None:
        nonlocal shown
        if time.monotonic() - shown >= _LINE_EVERY_S:
            shown = time.monotonic()
            say(_line(title, status))

    yield tell


def verdict(outcome: Outcome) -> None:
    """A run's verdict: each checker's answer, and the first pieces of evidence."""
    table = Table(box=None, padding=(0, 2, 0, 0), show_header=False)
    for name, found in outcome.verdicts.items():
        table.add_row(name, Text(word(found.valid), style=_STYLE[found.valid]), Text(found.summary))
    CONSOLE.print(table)
    for name, found in outcome.verdicts.items():
        if found.valid is False:
            for piece in found.evidence[:2]:
                CONSOLE.print(Text(f"  {name}: {piece['what']}"))
    CONSOLE.print(Text(f"{word(outcome.valid)}", style=f"bold {_STYLE[outcome.valid]}"), end="  ")
    CONSOLE.print(Text(f"report: {outcome.run / 'report.html'}"), soft_wrap=True)


def bench_table(rows: list[dict[str, Any]]) -> None:
    """Figures of each lock, with the ratio to the baseline's in brackets."""
    table = Table(title="Costs, with (the ratio to the first)", title_justify="left")
    for title in ("lock", *(title for _, _, title in COLUMNS), "round trips: acquire + release"):
        table.add_column(title, justify="left" if title == "lock" else "right")
    for row in rows:
        cells = [
            "-"
            if value is None
            else f"{value:.3g} ({ratio:.2f})"
            if value < 1000
            else f"{value:,.0f} ({ratio:.2f})"
            for value, ratio in row["cells"]
        ]
        trips = f"{row['trips']['acquire']:g} + {row['trips']['release']:g}"
        table.add_row(row["lock"], *cells, trips)
    CONSOLE.print(table)


_PROMISES = {
    "minority": "usable with a minority down",
    "fifo": "grants in order of asking",
    "one_wakeup": "a release wakes one waiter",
}


def locks_table(locks: Iterable[LockType]) -> None:
    table = Table(box=None, padding=(0, 2, 0, 0))
    for title in ("lock", "servers", "tokens", "promises", "what it is"):
        table.add_column(title, no_wrap=title in ("lock", "servers"))
    for lock in locks:
        tokens = ", ".join(lock.tokens()) or "none"
        promises = ", ".join(words for name, words in _PROMISES.items() if lock.promises.get(name))
        table.add_row(lock.name, f"{lock.kind} x{lock.servers}", tokens, promises, lock.what)
    CONSOLE.print(table)


_NEEDS = {
    "": "any lock",
    "token": "a lock with tokens",
    "pair": "a lock with paired tokens (redis -o token=paired)",
    "sequencer": "a lock whose service can be asked (etcd, chubby)",
}


def guards_table(guards: Iterable[Guard]) -> None:
    table = Table(box=None, padding=(0, 2, 0, 0))
    for title in ("guard", "needs", "stores", "what it does"):
        table.add_column(title, no_wrap=title == "guard")
    for guard in guards:
        table.add_row(guard.name, _NEEDS[guard.needs], ", ".join(guard.stores), guard.what)
    CONSOLE.print(table)


def families_table(families: Iterable[Family]) -> None:
    table = Table(box=None, padding=(0, 2, 0, 0))
    for title in ("family", "what it does", "where (:)", "how (/)", "receipt"):
        table.add_column(title, no_wrap=title == "family")
    for family in families:
        where = ", ".join((*family.targets, *(["a node"] if family.aims else [])))
        how = ", ".join(family.variants)
        table.add_row(family.name, family.what, where, how, family.receipt)
    CONSOLE.print(table)
    CONSOLE.print(
        "\n--nemesis FAMILY[:WHERE][/HOW][@INTERVAL][=WEIGHT],...   "
        "partition:primary/reject@10s,pause:client=3,pause:server,clock:redis-3/+1h",
        soft_wrap=True,
        markup=False,
    )


def suite_row(row: Mapping[str, Any], outcome: Outcome) -> None:
    """One line as soon as a run of a suite is over."""
    if not row["expected"]:
        mark, style = "finding", _STYLE[outcome.valid]
    else:
        mark, style = (
            ("as published", "green") if row["as_expected"] else ("NOT AS PUBLISHED", "red")
        )
    text = Text(f"{row['scenario']}, guard {row['guard']}: ")
    text.append(mark if row["expected"] else f"{word(outcome.valid)} (a finding)", style=style)
    if row["why"]:
        text.append(f"  {row['why']}")
    CONSOLE.print(text, soft_wrap=True)


_COLUMNS = {
    "lease_exclusion": "lease",
    "linearizable": "linear",
    "mutual_exclusion": "mutex",
    "fencing": "fencing",
    "ownership": "owner",
    "liveness": "live",
    "store": "store",
    "resource": "resource",
}


def suite_table(rows: list[dict[str, Any]]) -> None:
    """Scenario by checker: expected, and observed where it is another."""
    table = Table(
        title="Verdicts: observed, with (expected) where they differ", title_justify="left"
    )
    table.add_column("scenario")
    table.add_column("guard")
    table.add_column("claim")
    for title in _COLUMNS.values():
        table.add_column(title)
    table.add_column("outcome")
    for row in rows:
        cells = [_cell(row, name) for name in _COLUMNS]
        good = row["as_expected"]
        last = Text(
            "as published" if good else "NOT AS PUBLISHED", style="green" if good else "red"
        )
        if not row["expected"]:
            last = Text("finding")
        table.add_row(row["scenario"], row["guard"], row["claim"], *cells, last)
    CONSOLE.print(table)


def _cell(row: Mapping[str, Any], name: str) -> Text:
    if name not in row["observed"]:
        return Text("-", style="dim")
    observed = row["observed"][name]
    short = {True: "T", False: "F", "unknown": "?"}
    expected = row["expected"].get(name, observed)
    if expected != observed:
        return Text(f"{short[observed]} ({short[expected]})", style="bold red")
    return Text(short[observed], style=_STYLE[observed])
