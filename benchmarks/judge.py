"""Measures the cost of judging a long run: `fencepost analyze` on runs of 100,000 and 1,000,000
events.

The runs are made here (long_runs/) in a temporary folder: one in which all promises hold, one of
several locks, and one whose clients are paused past their leases. Those of more than 180,000 events
are cut into segments, as a test's are; one of 1,000,000 is in one history, as a file from elsewhere
may be. Each is judged by a separate process, as by a user; its pages are then opened, and one is
zoomed, in Chromium if installed. Prints a table, and exits with 1 if a figure is over its bound or
a verdict is unexpected.

    make bench-judge                  some minutes
    make bench-judge ARGS=--long      also 10,000,000 events: some 5 GB of disk, half an hour
    make bench-judge ARGS='--events 100000 --keep /tmp/runs'
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "src"))

import browser  # noqa: E402
from long_runs.run import CALM, TROUBLED, Wanted, write  # noqa: E402

MB = 1 << 20
SHORT, MIDDLE, LONG = 100_000, 1_000_000, 10_000_000
ONE_FILE = "one-file"
EXPECTED = {0: "valid", 1: "INVALID", 2: "unknown"}


@dataclass(frozen=True)
class Bounds:
    """Upper bounds for judging this many events."""

    wall_s: float
    memory_mb: float


BOUNDS = {MIDDLE: Bounds(30, 700), LONG: Bounds(360, 2048)}
WHOLE = Bounds(60, 750)
"""For a million events in one history."""
PAGE_MB, OPEN_S, ZOOMS, ZOOMS_S = 8, 2.0, 20, 1.0
"""For every page, whatever the run: its size, its opening, and the scripting of this many zooms."""


@dataclass
class Row:
    """One judged run: its cost, and that of its page; None without Chromium."""

    name: str
    events: int
    verdict: str
    wall_s: float
    cpu_s: float
    memory_mb: float
    page_mb: float
    open_s: float | None = None
    zooms_s: float | None = None

    def over(self) -> list[str]:
        """Describe the figures that are over their bounds."""
        bounds = BOUNDS.get(self.events, Bounds(float("inf"), float("inf")))
        if self.name == ONE_FILE:
            bounds = WHOLE
        rows = [
            ("wall time", self.wall_s, bounds.wall_s, "s"),
            ("memory", self.memory_mb, bounds.memory_mb, "MB"),
            ("page", self.page_mb, PAGE_MB, "MB"),
            ("opening", self.open_s or 0.0, OPEN_S, "s"),
            (f"{ZOOMS} zooms", self.zooms_s or 0.0, ZOOMS_S, "s"),
        ]
        return [
            f"{self.name}, {self.events:,} events: {what} {found:.1f} {unit} (bound: {bound:g})"
            for what, found, bound, unit in rows
            if found > bound
        ]


def runs(events: int) -> list[tuple[Wanted, str]]:
    """Return the runs of this length, each with its verdict."""
    calm = (Wanted("calm", events, CALM), "valid")
    if events == LONG:
        return [calm]
    one_file = (Wanted(ONE_FILE, events, CALM, whole=True), "valid")
    return [
        *([one_file] if calm[0].segments > 1 else []),
        calm,
        (Wanted("four-locks", events, CALM, concurrency=10, locks=4), "valid"),
        (Wanted("paused-clients", events, TROUBLED), "INVALID"),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description="cost of judging long runs")
    parser.add_argument("--long", action="store_true", help="also a run of 10,000,000 events")
    parser.add_argument("--events", type=int, help="only runs of this length")
    parser.add_argument(
        "--only", help="one of the runs: calm, four-locks, paused-clients, one-file"
    )
    parser.add_argument("--keep", type=Path, help="keep the runs in this folder, and reuse them")
    asked = parser.parse_args()
    lengths = [asked.events] if asked.events else [SHORT, MIDDLE, *([LONG] if asked.long else [])]
    chromium = browser.program()
    print(f"{'run':15}{'events':>12}{'verdict':>9}{'wall s':>8}{'CPU s':>8}{'memory MB':>11}"
          f"{'page MB':>9}{'open s':>8}{f'{ZOOMS} zooms s':>12}{'growth':>8}")  # fmt: skip
    wrong: list[str] = []
    before: dict[str, Row] = {}
    with tempfile.TemporaryDirectory(prefix="fencepost-judge-") as scratch:
        for events in lengths:
            for wanted, verdict in runs(events):
                if asked.only in (None, wanted.name):
                    row = judged(wanted, asked.keep or Path(scratch), chromium)
                    show(row, before.get(row.name))
                    before[row.name] = row
                    wrong += row.over()
                    if row.verdict != verdict:
                        wrong.append(f"{row.name} is judged {row.verdict}, and is {verdict}")
    if chromium is None:
        print(f"No page was opened: none of {', '.join(browser.NAMES)} is installed.")
    for what in wrong:
        print(f"over its bound: {what}" if "bound" in what else f"wrong: {what}")
    return 1 if wrong else 0


def show(row: Row, shorter: Row | None) -> None:
    """Print a row. `growth`: factor of the CPU time, and factor of the events."""
    growth = ""
    if shorter is not None:
        growth = f"{row.cpu_s / shorter.cpu_s:.1f}/{row.events / shorter.events:.0f}"
    opened, zooms = ("-" if one is None else f"{one:.2f}" for one in (row.open_s, row.zooms_s))
    print(f"{row.name:15}{row.events:>12,}{row.verdict:>9}{row.wall_s:>8.1f}{row.cpu_s:>8.1f}"
          f"{row.memory_mb:>11.0f}{row.page_mb:>9.2f}{opened:>8}{zooms:>12}{growth:>8}",
          flush=True)  # fmt: skip


def judged(wanted: Wanted, place: Path, chromium: str | None) -> Row:
    """Make the run unless it exists, judge it, and open its page."""
    folder = place / f"{wanted.name}-{wanted.events}"
    if not (folder / "test.json").is_file():
        folder.mkdir(parents=True)
        write(folder, wanted)
    wall_s, cpu_s, memory_mb, code = analyzed(folder)
    pages = sorted(folder.rglob("report.html"), key=lambda page: page.stat().st_size)
    row = Row(
        wanted.name,
        wanted.events,
        EXPECTED.get(code, f"exit {code}"),
        wall_s,
        cpu_s,
        memory_mb,
        pages[-1].stat().st_size / MB if pages else 0.0,
    )
    if chromium and pages:
        with browser.chromium(chromium) as found:
            # The best of three, because other programs use the machine too. First that of the run,
            # then the largest.
            slowest = {folder / "report.html": 0.0, pages[-1]: 0.0}
            for page in slowest:
                slowest[page] = min(found.open(page) for _ in range(3))
            row.open_s = max(slowest.values())
            row.zooms_s = found.wheel("canvas.detail", ZOOMS, -100)
    return row


def analyzed(folder: Path) -> tuple[float, float, float, int]:
    """Run `fencepost analyze` on it; return wall and CPU seconds, peak memory in MB, and its exit
    code."""
    command = [sys.executable, "-m", "fencepost", "analyze", str(folder)]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    output = folder / "analyze.log"
    begun = time.monotonic()
    with output.open("wb") as file:
        actions = [(os.POSIX_SPAWN_DUP2, file.fileno(), 1), (os.POSIX_SPAWN_DUP2, file.fileno(), 2)]
        pid = os.posix_spawn(sys.executable, command, environment, file_actions=actions)
        memory = _Memory(pid)
        _, status, used = os.wait4(pid, 0)
    wall_s = time.monotonic() - begun
    # The largest of its processes exactly, and the sum of all as sampled.
    peak_mb = max(_largest_mb(used), memory.peak_mb())
    return wall_s, used.ru_utime + used.ru_stime, peak_mb, os.waitstatus_to_exitcode(status)


def _largest_mb(used: resource.struct_rusage) -> float:
    return used.ru_maxrss / 1024


class _Memory(threading.Thread):
    """Samples the memory of a process and its descendants, counting shared pages once."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self._pid, self._peak_kb, self._over = pid, 0, threading.Event()
        self.start()

    def run(self) -> None:
        while not self._over.wait(0.2):
            self._peak_kb = max(self._peak_kb, sum(map(_shared_out_kb, _tree(self._pid))))

    def peak_mb(self) -> float:
        self._over.set()
        self.join()
        return self._peak_kb / 1024


def _tree(pid: int) -> list[int]:
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []
    return [pid, *(found for child in children for found in _tree(int(child)))]


def _shared_out_kb(pid: int) -> int:
    """Return the proportional set size: private pages, and a share of shared ones."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("Pss:")), 0)


if __name__ == "__main__":
    sys.exit(main())
