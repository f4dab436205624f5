"""`server-log`: did a server crash by itself, according to its log?

Clients may never notice a server that panics, because others of its cluster answer for it. So each
server's log is searched for panics, fatal errors and out-of-memory exits (as Jepsen's
log-file-pattern does). Each kind of server names such lines; all are searched for in every log,
because an external server may be of an unknown kind.

Faults leave marks in logs too, which must not count. Killed servers write nothing; as they restart,
PostgreSQL refuses clients with FATAL, which is not a failure of the server and is not searched for.
A server that exits because its disk is full says so, PostgreSQL names a process that was killed,
and a restarted server may find its port taken or its files gone: if a fault of the run hit that
server, or made it lose its processes, the line is only named (`after_faults`), else it counts.

A log of a long run lacks its middle (`left_out`), which its node searched by the same patterns
before dropping it. If it was not searched, the verdict cannot be true.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fencepost import plainfile
from fencepost.checker.checker import Checker, Run
from fencepost.checker.facts.crash_lines import FULL, CrashLines
from fencepost.checker.facts.faults import faults
from fencepost.checker.verdict import Verdict, count

_GAP = re.compile(r"^\.\.\. (\d+) bytes were left out here(, once they had been searched)?")
_NEAR = 5  # lines before a bad one (Redis), or after it (Java), in which the reason stands
_SHOWN = 200  # longest line in the evidence, in characters


def gap(count: int, searched: bool) -> str:
    """Return the line of a log that replaces the bytes left out. `searched`: the bytes were
    searched for this checker's patterns, and matches follow."""
    return f"... {count} bytes were left out here{', once they had been searched' * searched} ...\n"


@dataclass(frozen=True)
class _Line:
    """A bad line of a server's log. full: it, or a line near it, blames a full disk. lost: a fault
    explains it by which the server lost a process or its data."""

    server: str
    number: int
    text: str
    full: bool
    lost: bool

    def __str__(self) -> str:
        return f"{self.server}, line {self.number}: {self.text[:_SHOWN]}"


def server_log(run: Run) -> Verdict:
    """Check that no server panicked, exited with a fatal error or ran out of memory."""
    on = faults(run.history)
    struck = {node for fault in on for node in fault.targets}
    down = {node for fault in on if fault.forgets is not False for node in fault.targets}
    servers = list(run.test.get("servers") or sorted(run.logs))
    bad: list[_Line] = []
    excused: list[_Line] = []
    silent = []
    searched: list[str] = []
    missing: list[str] = []
    for server in servers:
        lines = _lines(run.logs.get(server))
        if not lines:
            silent.append(server)
        for count_, looked in _gaps(lines):
            (searched if looked else missing).append(f"{server} ({count_} bytes)")
        for line in _bad(server, lines, run.crash_lines):
            explained = (line.full and server in struck) or (line.lost and server in down)
            (excused if explained else bad).append(line)
    details: dict[str, Any] = {
        "logs": len(servers) - len(silent),
        "after_faults": [str(line) for line in excused],
    }
    if searched or missing:
        details["left_out"] = [*searched, *missing]
    if bad:
        summary = (
            f"{count(len(bad), 'line')} of the servers' logs "
            f"{'reports a crash' if len(bad) == 1 else 'report crashes'}: {bad[0]}"
        )
        rows = [{"what": str(line), "server": line.server, "line": line.number} for line in bad]
        return Verdict(False, summary, rows, details)
    if silent or not servers:
        return Verdict("unknown", f"No log of {', '.join(silent) or 'any server'}.", [], details)
    if missing:
        summary = (
            f"The middle of these logs is missing, and was not searched: {', '.join(missing)}."
        )
        return Verdict("unknown", summary, [], details)
    summary = f"No panic, fatal error or out-of-memory exit in {count(len(servers), 'log')}."
    if excused:
        summary += f" Explained by a fault of the run: {excused[0]}."
    if searched:
        summary += f" Left out, once it had been searched: the middle of {', '.join(searched)}."
    return Verdict(True, summary, [], details)


def _lines(log: Path | None) -> list[str]:
    if log is None:
        return []
    try:
        return plainfile.read(log).decode(errors="replace").splitlines()
    except (OSError, ValueError):
        return []


def _gaps(lines: list[str]) -> list[tuple[int, bool]]:
    """Return how many bytes are missing at each place, and whether they were searched."""
    found = [match for line in lines if (match := _GAP.match(line))]
    return [(int(match[1]), bool(match[2])) for match in found]


def _bad(server: str, lines: list[str], crashes: CrashLines) -> Iterator[_Line]:
    for place, text in enumerate(lines):
        if crashes.every.search(text):
            near = lines[max(0, place - _NEAR) : place + _NEAR + 1]
            full, lost = any(map(FULL.search, near)), bool(crashes.of_loss.search(text))
            yield _Line(server, place + 1, text.strip(), full, lost)


CHECKER = Checker(
    name="server-log",
    question="No server panicked, died of a fatal error or ran out of memory.",
    about=("service",),
    check=server_log,
    column="log",
    touches=lambda history: False,  # a history without its folder has no logs
    at_the_end=True,  # logs are fetched after the run
    needs_logs=True,
)
