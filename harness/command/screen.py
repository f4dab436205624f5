"""Prints progress, answers, tables and verdicts to the terminal."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import IO, TYPE_CHECKING, Any

from fencepost.checker.verdict import Valid
from fencepost.output import unescaped, visible

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from fencepost.harness.execute.progress import Progress, Status
    from fencepost.harness.judge.judge import Outcome

_LINE_EVERY_S = 5.0
# The width of tables in a log, which has no width of its own.
_LOG_WIDTH = 140
STYLE: dict[Valid, str] = {True: "green", False: "red", "unknown": "yellow"}


@cache
def console() -> Console:
    """Return the console of standard output, created on first use. Its text has no markup."""
    from rich.console import Console

    is_terminal = Console().is_terminal
    return _console_class()(
        highlight=False, markup=False, emoji=False, width=None if is_terminal else _LOG_WIDTH
    )


@cache
def _console_class() -> type[Console]:
    """Return the class of the console; it is made on first use, as rich is slow to import.

    The console writes colours past the stream that shows control characters (output.py), and so
    has to show those of the text itself.
    """
    from rich.console import Console
    from rich.segment import Segment

    class Escaping(Console):
        @property
        def file(self) -> IO[str]:
            return unescaped(super().file)

        @file.setter
        def file(self, new: IO[str]) -> None:
            self._file = new

        def render_str(self, text: str, **how: Any) -> Text:
            return super().render_str(visible(text), **how)  # before a table measures it

        def render(self, *args: Any, **kwargs: Any) -> Iterable[Segment]:
            for text, style, control in super().render(*args, **kwargs):
                yield Segment(text if control else visible(text), style, control)

    return Escaping


@contextmanager
def muted(is_muted: bool = True) -> Iterator[None]:
    """Write nothing within the block: a program reads standard output."""
    before = console().quiet
    console().quiet = is_muted or before
    try:
        yield
    finally:
        console().quiet = before


def say(text: str) -> None:
    """Print a line about the progress of a command."""
    console().print(text, style="dim", soft_wrap=True)


def write(text: str) -> None:
    """Print a line of the result."""
    console().print(text, soft_wrap=True)


def overwrite(text: str, style: str = "") -> None:
    """Print a line that the next one overwrites."""
    from rich.control import Control
    from rich.segment import ControlType

    console().print(text, end="", style=style)
    console().control(Control(ControlType.CARRIAGE_RETURN))


def table(*titles: str, title: str = "", right: bool = False, whole: int = 0) -> Table:
    """Return an empty table whose first `whole` columns never wrap.

    With a title, it has borders. `right`: align all columns but the first to the right.
    """
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
def progress(title: str, time_s: float | None = None) -> Iterator[Progress]:
    """Show a run's status: a live view in a terminal, or a line every few seconds.

    `time_s`: how long the clients work, if known.
    """
    if console().is_terminal:
        from rich.live import Live

        from fencepost.harness.command.live import View

        view = View(title, time_s)
        with Live(console=console(), refresh_per_second=4, transient=True) as live:
            yield lambda status: live.update(view.frame(status))
        return
    shown = time.monotonic()

    def report(status: Status) -> None:
        nonlocal shown
        if time.monotonic() - shown >= _LINE_EVERY_S:
            shown = time.monotonic()
            say(_line(title, status))

    yield report


def _line(title: str, status: Status) -> str:
    on = f"  faults on: {'; '.join(status.on)}" if status.on else ""
    broken = f"  broken: {', '.join(status.broken)}" if status.broken else ""
    broken += "  (not judged any more before its end)" if status.unjudged else ""
    return (
        f"{title}  {status.elapsed_s:5.1f} s  {status.phase}  {status.ops} events  "
        f"{status.holds} holds{broken}{on}"
    )


_PIECES = 2


def verdict(outcome: Outcome, asked: Iterable[str] = (), pieces: int | None = _PIECES) -> None:
    """Print a run's verdict: the checkers' answers by question, evidence, and a sentence.

    `asked`: the questions and checkers that determine the exit code. `pieces`: the maximum of
    evidence for each checker; None means all.
    """
    from rich.table import Table
    from rich.text import Text

    from fencepost.report.words.questions import questions, the_test

    checkers = outcome.results["checkers"]
    width = max(map(len, checkers), default=0)
    for question in (*questions(checkers), the_test(checkers)):
        if question.valid is None:
            continue
        title = Text(f"{question.title} ", style="bold")
        console().print(title.append(question.short, style=STYLE[question.valid]))
        shown = Table(box=None, padding=(0, 2, 0, 0), show_header=False)
        for part in question.parts:
            answer = Text(f"{word(part.valid):7}", style=STYLE[part.valid])
            shown.add_row(f"  {part.checker:{width}}", answer, Text(part.summary))
        console().print(shown)
    for name, found in outcome.verdicts.items():
        if found.valid is False:
            for piece in found.evidence[:pieces]:
                write(f"  {name}: {piece['what']}")
    summary(outcome, asked)


def summary(outcome: Outcome, asked: Iterable[str]) -> None:
    """Print the result in a sentence, the answer to `asked`, and the path of the report."""
    from rich.text import Text

    from fencepost.report.words.answer import sentence

    style = f"bold {STYLE[outcome.valid]}"
    console().print(Text(sentence(outcome.results), style=style), soft_wrap=True)
    _counted(outcome, list(asked))
    write(f"report: {outcome.folder / 'report.html'}")


def _counted(outcome: Outcome, asked: list[str]) -> None:
    if asked:
        from fencepost.report.words.answer import counted

        valid = counted(outcome.results, asked)
        console().print(f"On {', '.join(asked)}: {word(valid)}", style=STYLE[valid])
