"""What a person sees while a command runs, and after it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING

from fencepost.checker.verdict import Valid

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from fencepost.harness.run.judge import Outcome
    from fencepost.harness.run.progress import Progress, Status

_LINE_EVERY_S = 5.0
# A log has no width: tables keep theirs.
_LOG_WIDTH = 140
STYLE: dict[Valid, str] = {True: "green", False: "red", "unknown": "yellow"}


@cache
def console() -> Console:
    """Standard output, made when something is first written to it."""
    from rich.console import Console

    made = Console(highlight=False)
    return made if made.is_terminal else Console(highlight=False, width=_LOG_WIDTH)


def say(text: str) -> None:
    """Tell what is being done."""
    console().print(text, style="dim", markup=False, soft_wrap=True)


def write(text: str) -> None:
    """Give an answer."""
    console().print(text, markup=False, soft_wrap=True)


def table(*titles: str, title: str = "", right: bool = False, whole: int = 0) -> Table:
    """An empty table, its first `whole` columns never wrapped; under a title it has lines, and
    `right` puts all columns but the first to the right."""
    from rich.table import Table

    made = (
        Table(title=title, title_justify="left") if title else Table(box=None, padding=(0, 2, 0, 0))
    )
    for number, words in enumerate(titles):
        justify = "right" if right and number else "left"
        made.add_column(words, no_wrap=number < whole, justify=justify)  # type: ignore[arg-type]
    return made


def word(valid: Valid) -> str:
    return {True: "valid", False: "INVALID", "unknown": "unknown"}[valid]


@contextmanager
def progress(title: str) -> Iterator[Progress]:
    """Shows a run's status: one line that changes on a terminal, a line now and then elsewhere."""
    if console().is_terminal:
        from rich.live import Live
        from rich.text import Text

        with Live(console=console(), refresh_per_second=4, transient=True) as live:
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


def _line(title: str, status: Status) -> str:
    on = f"  faults on: {'; '.join(status.on)}" if status.on else ""
    return (
        f"{title}  {status.elapsed_s:5.1f} s  {status.phase}  {status.ops} events  "
        f"{status.holds} holds{on}"
    )


def verdict(outcome: Outcome) -> None:
    """A run's verdict: each checker's answer, and the first pieces of evidence."""
    from rich.table import Table
    from rich.text import Text

    shown = Table(box=None, padding=(0, 2, 0, 0), show_header=False)
    for name, found in outcome.verdicts.items():
        shown.add_row(name, Text(word(found.valid), style=STYLE[found.valid]), Text(found.summary))
    console().print(shown)
    for name, found in outcome.verdicts.items():
        if found.valid is False:
            for piece in found.evidence[:2]:
                write(f"  {name}: {piece['what']}")
    console().print(Text(word(outcome.valid), style=f"bold {STYLE[outcome.valid]}"), end="  ")
    write(f"report: {outcome.folder / 'report.html'}")
