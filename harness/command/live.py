"""Renders the live view of a run in a terminal."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from fencepost.harness.execute.progress import Status

_BAR = 30
_RATE_S = 3.0
_LAST = "last holds"
RUNNING = "running"
"""The phase in which clients work and faults are injected."""


class View:
    """Renders the frames of one run; remembers when the clients began, and recent counts.

    `time_s`: how long the clients work; None if unknown, as in a scripted run.
    """

    def __init__(self, title: str, time_s: float | None) -> None:
        self._title = title
        self._time_s = time_s
        self._began_s: float | None = None
        self._seen: list[tuple[float, int]] = []

    def frame(self, status: Status) -> RenderableType:
        """Return the rendering of a status."""
        if status.phase == RUNNING and self._began_s is None:
            self._began_s = status.elapsed_s
        self._seen.append((status.elapsed_s, status.holds))
        self._seen = [one for one in self._seen if one[0] >= status.elapsed_s - _RATE_S]
        rows = Table(box=None, padding=(0, 2, 0, 2), show_header=False, expand=True)
        # Never shorten the first column in favour of the second.
        rows.add_column(style="dim", no_wrap=True, min_width=len(_LAST))
        rows.add_column(no_wrap=True, overflow="ellipsis", ratio=1)
        rows.add_row(
            "holds",
            f"{self._rate():.0f} per second, {status.holds:,} in total, {status.ops:,} events",
        )
        rows.add_row("held by", ", ".join(status.holders) or "none")
        rows.add_row(_LAST, ", ".join(status.last) or "none yet")
        rows.add_row(
            "faults on", Text("; ".join(status.on) or "none", style="yellow" * bool(status.on))
        )
        for checker, what in status.broken.items():
            found = Text(f"{checker}: {what}", style="bold red", no_wrap=False, overflow="fold")
            rows.add_row("broken", found)
        if status.unjudged:
            rows.add_row("judging", f"only at the end: {status.unjudged}")
        return Group(self._head(status), rows)

    def _rate(self) -> float:
        (first_s, first), (last_s, last) = self._seen[0], self._seen[-1]
        return (last - first) / (last_s - first_s) if last_s > first_s else 0.0

    def _head(self, status: Status) -> RenderableType:
        head = Table.grid(padding=(0, 2, 0, 0))
        words = Text(self._title, style="bold")
        if self._time_s is None or self._began_s is None or status.phase != RUNNING:
            head.add_row(words, Text(status.phase, style="cyan"), f"{status.elapsed_s:.0f} s")
            return head
        done_s = min(status.elapsed_s - self._began_s, self._time_s)
        left = f"{self._time_s - done_s:.0f} s left"
        bar = ProgressBar(total=self._time_s, completed=done_s, width=_BAR)
        head.add_row(words, Text(status.phase, style="cyan"), bar, left)
        return head
