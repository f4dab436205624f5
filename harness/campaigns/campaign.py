"""A campaign: a plan, and the folder with a line for each item that has finished."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from fencepost.harness.campaigns.item import Item, Plan
from fencepost.harness.errors import BadArguments
from fencepost.harness.judge.judge import Outcome
from fencepost.harness.locked import is_live, locked
from fencepost.harness.results import finder, results
from fencepost.report import campaign_files
from fencepost.report.campaign_files import ASKED, LINES, Stored
from fencepost.report.stored import ReportError

Line = dict[str, Any]


class Campaign:
    """A plan with its results. `rows`: the rows of the plan by key; `lines`: the lines of each.

    `name` is the folder in the results folder that gets the campaign's own folder when it begins.
    """

    def __init__(
        self, plan: Plan, name: str = "", folder: Path | None = None, lines: Iterable[Line] = ()
    ) -> None:
        self.plan = plan
        self.rows = {row["key"]: row for row in plan.rows()}
        self.lines: dict[str, list[Line]] = {key: [] for key in self.rows}
        for line in lines:
            self.lines[line["row"]].append(line)
        self.name, self._folder = name or plan.kind, folder
        self._held: ExitStack | None = None

    @property
    def has_begun(self) -> bool:
        return self._folder is not None

    @property
    def folder(self) -> Path:
        assert self._folder is not None
        return self._folder

    def begin(self) -> None:
        """Create its folder, if it does not exist."""
        if self._folder is None:
            self._folder = results.create(self.name)
            campaign_files.write(self._folder, self.stored())
            if self._held is not None:
                self._held.enter_context(locked(self._folder))

    @contextmanager
    def running(self) -> Iterator[None]:
        """Hold the lock of its folder within the block, from when the folder exists."""
        with ExitStack() as held:
            if self._folder is not None:
                held.enter_context(locked(self._folder))
            self._held = held
            yield
        self._held = None

    @property
    def testable(self) -> list[str]:
        """The keys of the rows that can run."""
        return [key for key, row in self.rows.items() if not row.get("reason")]

    @property
    def done(self) -> int:
        """The number of finished rounds: every row has at least as many lines."""
        return min((len(self.lines[key]) for key in self.testable), default=0)

    def left(self, number: int) -> list[Item]:
        """Return the items of a round that have not finished, in the order in which they run."""
        done = {(row, line["number"]) for row, lines in self.lines.items() for line in lines}
        return [item for item in self.plan.items(number) if item.key not in done]

    def add(self, item: Item, found: Any, why: str, tries: int = 1) -> Line:
        """Append the line of an item that has returned or crashed; return the line."""
        line: Line = {"row": item.row, "number": item.number, "seed": item.seed}
        if tries > 1:
            line["tries"] = tries
        if found is None:
            line["crashed"] = why
        else:
            if (folder := getattr(found, "folder", None)) is not None:
                line["run"] = os.path.relpath(folder, self.folder)
            if isinstance(found, Outcome):
                line["versions"] = versions(found)
            line |= self.plan.line(item, found)
        campaign_files.append(self.folder, line)
        self.lines[item.row].append(line)
        return line

    def stored(self, versions: dict[str, dict[str, str]] | None = None) -> Stored:
        rows = [{**row, "runs": self.lines[key]} for key, row in self.rows.items()]
        return Stored(self.plan.kind, self.plan.to_json(), rows, versions or {})


def versions(outcome: Outcome) -> dict[str, str]:
    """Return the versions of servers, the library and the machine."""
    try:
        return results.read_test(outcome.folder).get("versions") or {}
    except BadArguments:
        return {}  # the run ended before it knew them


def create(plan: Plan, name: str = "") -> Campaign:
    """Create a campaign, with its folder, of which nothing has run yet."""
    made = Campaign(plan, name)
    made.begin()
    return made


def resumed(
    name: str, kind: str, plan_of: Callable[[Mapping[str, Any]], Plan], warn: Callable[[str], None]
) -> Campaign:
    """Return a campaign with the lines that it has. One of an earlier version is converted, with a
    warning.

    Raises:
        BadArguments: it does not exist, is running, or its files are malformed.
    """
    folder = finder.find(name, kind)
    if is_live(folder):
        raise BadArguments(f"{folder} is still running: wait until it ends, or stop it with Ctrl-C")
    try:
        campaign_files.must_be_plain(folder)
        stored = campaign_files.read(folder, kind)
        made = Campaign(plan_of(stored.plan), "", folder, stored.lines)
    except ReportError as error:
        raise BadArguments(f"cannot resume: {error}") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BadArguments(f"cannot resume from {folder}: {error}") from error
    if stored.older:
        warn(f"{folder}: {stored.older} has an earlier format; converted to {ASKED}, {LINES}")
        campaign_files.write(folder, made.stored(stored.versions))
    else:
        campaign_files.mend(folder)
    return made
