"""Options and output that all campaign commands share."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict, dataclass, fields
from functools import partial, wraps
from pathlib import Path
from typing import Any

from rich.text import Text

from fencepost import commandline
from fencepost.checker.verdict import count
from fencepost.harness.campaigns import engine
from fencepost.harness.campaigns.campaign import Campaign, Line, resumed
from fencepost.harness.campaigns.executors import ENGINES, Clusters, Executor, scheduler_of
from fencepost.harness.campaigns.item import Hushed, Plan, Watcher
from fencepost.harness.command import options, screen
from fencepost.harness.command.exits import CRASHED, EXIT
from fencepost.harness.command.files import Files
from fencepost.harness.command.reporter import error_line, line
from fencepost.harness.errors import BadArguments
from fencepost.harness.spec.spec import seconds
from fencepost.report.exports import batches, junit
from fencepost.report.exports.batches import Collected
from fencepost.report.pages.leaders import NONE
from fencepost.report.pages.page import usable
from fencepost.report.words.cells import STATES, summed
from fencepost.runfiles import SCHEMA

_UNTOLD = ("states", "covered")
"""Fields of a hunt's line that only its page needs: thousands of numbers."""


@dataclass(frozen=True)
class How:
    """Options of all campaigns (options.py)."""

    budget: options.Budget = None
    resume: options.Resume = None
    parallel: options.Parallel = None
    engine: options.Engine = ENGINES[0]
    scheduler: options.Scheduler = None
    remote: options.Remote = "docker"
    hosts: options.HostsFile = None
    junit: options.Junit = None
    summary: options.Summary = None
    json: options.Json = False
    results: options.Results = None

    @property
    def budget_s(self) -> float | None:
        return None if self.budget is None else seconds("budget", self.budget)

    def resumed(
        self, kind: str, plan_of: Callable[[Mapping[str, Any]], Plan], given: Mapping[str, Any]
    ) -> Campaign | None:
        """Return the campaign to resume, if one is named. Raise BadArguments if an option that the
        campaign sets is given too."""
        if self.resume is None:
            return None
        must_come_from(kind.replace("-", " "), given)
        return resumed(self.resume, kind, plan_of, screen.say)

    @contextmanager
    def executor(self, lanes: int = 1, leave_up: bool = False) -> Iterator[Executor]:
        """Provide the executor of items that need servers.

        Raises:
            BadArguments: there is no such engine, or options exclude one another.
        """
        watcher: Watcher = _Program() if self.json else screen
        lanes = self.parallel or lanes
        if address := self.must_fit(lanes, leave_up):
            with closing(workers(address)) as made:
                screen.say(f"Runs go to {count(made.lanes, 'worker')} of {address}")
                yield made
            return
        yield Clusters(watcher, lanes, leave_up, self.remote, self.hosts)

    def must_fit(self, lanes: int = 1, leave_up: bool = False) -> str:
        """Return the address of the scheduler of the engine, or "" for the local engine.

        Raises:
            BadArguments: there is no such engine, or options exclude one another.
        """
        address = scheduler_of(self.engine, self.scheduler)
        elsewhere = self.parallel or leave_up or self.remote != "docker" or self.hosts is not None
        if address and elsewhere:
            raise BadArguments(
                "--engine dask starts containers on its workers' machines, and runs an item on "
                "each worker at a time: leave --hosts, --remote, --parallel and "
                "--leave-db-running out"
            )
        if lanes > 1 and self.hosts is not None:
            raise BadArguments("--parallel needs containers: the hosts of a file are one cluster")
        if lanes > 1 and leave_up:
            raise BadArguments("--leave-db-running leaves one cluster up: leave --parallel out")
        return address

    def passed_on(self) -> list[str]:
        """Return the options that say where items run, for a command that runs this one's items."""
        places = ("parallel", "engine", "scheduler", "remote", "hosts")
        given = {name: getattr(self, name) for name in places}
        changed = {name: value for name, value in given.items() if value != getattr(How, name)}
        # The command may have another working directory.
        paths = {name: value.resolve() for name, value in changed.items() if name == "hosts"}
        words = (commandline.option(name, value) for name, value in (changed | paths).items())
        return [word for option in words for word in option]


def must_come_from(kind: str, given: Mapping[str, Any]) -> None:
    """Raise BadArguments if an option is given that a resumed one of this kind sets."""
    wrong = next((word for word, value in given.items() if value), None)
    if wrong:
        raise BadArguments(
            f"{wrong} cannot be combined with --resume, which takes everything from the {kind} "
            "that it names"
        )


def workers(address: str, ahead: int = 1) -> Any:
    from fencepost.harness.campaigns.dask_executor import Workers

    return Workers(address, ahead)


class _Program(Hushed):
    """Reports the set-up to a program that reads JSON."""

    def say(self, text: str) -> None:
        line("said", text=text)


def with_how(command: Callable[..., int]) -> Callable[..., int]:
    """Give a command the options of How, instead of its parameter `how`."""
    signature = inspect.signature(command, eval_str=True)
    annotations = inspect.get_annotations(How, eval_str=True)
    own = [one for one in signature.parameters.values() if one.name != "how"]
    added = [
        inspect.Parameter(
            one.name, inspect.Parameter.KEYWORD_ONLY, default=one.default,
            annotation=annotations[one.name],
        )
        for one in fields(How)
        if one.name not in signature.parameters
    ]  # fmt: skip

    @wraps(command)
    def call(**given: Any) -> int:
        how = How(**{one.name: given.pop(one.name) for one in added})
        Files(how.junit, how.summary).must_be_writable()
        with screen.muted(how.json):
            try:
                return command(**given, how=how)
            except BaseException as error:
                if how.json:
                    error_line(error)
                raise

    call.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in (*own, *added)]
    )
    return call


@dataclass(frozen=True)
class View:
    """The output of one kind of campaign. `finished` prints a line when an item has finished,
    `ended` prints tables at the end, `render` writes the page (`page` is its label) and returns its
    path."""

    finished: Callable[[Campaign, Line], None]
    ended: Callable[[Campaign], None]
    render: Callable[[Campaign], Path]
    exit_code: Callable[[Collected], int] = lambda found: 0
    collected: Callable[[Path], Collected] = batches.read
    page: str = "report"


def carry_out(
    found: Sequence[Campaign], how: How, view: View, executor: Executor, rounds: int | None = 1
) -> int:
    """Run campaigns and return the exit code. Write the output and files even if the run ends
    early."""
    ended: BaseException | None = None
    whole, came = True, list[tuple[int, Collected]]()
    with ExitStack() as stack:
        for one in found:
            stack.enter_context(one.running())
            if how.json:
                _started(one)
        try:
            say = partial(_finished, how, view)
            whole = engine.carry_out(found, executor, say, rounds, how.budget_s)
        except BaseException as error:
            ended = error
            raise
        finally:
            for one in found:
                if not one.has_begun:
                    screen.write(f"Not run: {one.name}")
                    continue
                came.append((one.plan.seed, _ended(one, how, view)))
                if ended is not None or (not whole and one.done < (rounds or 1)):
                    screen.write(f"Some items have not run; resume with: {_resume(one)}")
            _to_files(how, found[0].plan.seed, came, ended)
    return max((view.exit_code(one) for _, one in came), key=_SEVERITY.index, default=0)


_SEVERITY = (EXIT[True], CRASHED, EXIT["unknown"], EXIT[False])


def _resume(one: Campaign) -> str:
    """Return the command that resumes a campaign."""
    plan = one.plan.to_json()
    words = ("hunt", plan["lock"]) if one.plan.kind == "campaign" else (one.plan.kind,)
    return commandline.command(*words, commandline.option("resume", one.folder.name))


def _started(campaign: Campaign) -> None:
    plan = campaign.plan
    rows = len(campaign.rows)
    line("started", schema=SCHEMA, kind=plan.kind, name=campaign.name, seed=plan.seed, rows=rows)


def _finished(how: How, view: View, campaign: Campaign, row: Line) -> None:
    view.finished(campaign, row)
    if how.json:
        kept = {name: value for name, value in row.items() if name not in _UNTOLD}
        line("finished", folder=str(campaign.folder), **kept)


def _ended(campaign: Campaign, how: How, view: View) -> Collected:
    folder = campaign.folder
    with usable(folder, campaign.plan.kind):
        page = view.render(campaign)
        view.ended(campaign)
        screen.write(f"{view.page}: {page}")
        found = view.collected(folder)
    places = {"folder": str(folder), "report": str(page)}
    _print_result(how, campaign.plan.seed, found, view.exit_code(found), **places)
    return found


def tell(how: How, seed: int, found: Collected, exit_code: int, **more: Any) -> None:
    """Write the JSON and the files of a summary that belongs to no campaign. `more`: further fields
    of its JSON."""
    _print_result(how, seed, found, exit_code, **more)
    _to_files(how, seed, [(seed, found)])


def _print_result(how: How, seed: int, found: Collected, exit_code: int, **more: Any) -> None:
    if how.json:
        rows = {name: asdict(one) for name, one in found.lines.items()}
        more |= {"kind": found.kind, "words": found.words}
        line("result", seed=seed, exit_code=exit_code, rows=rows, **more)


def _to_files(
    how: How,
    seed: int,
    found: Sequence[tuple[int, Collected]],
    ended: BaseException | None = None,
) -> None:
    """Write the results of campaigns, each with its seed, to the requested files."""
    titled = [(f"{one.name}, seed {own}", one) for own, one in found]
    Files(how.junit, how.summary).write_after(
        ended,
        junit=lambda: junit.campaigns([one for _, one in found], seed, ended),
        summary=lambda: "".join(batches.markdown(*one) for one in titled).encode(),
    )


STATE_STYLE = {
    "kept": "green", "broken": "red", "damaged": "red", "unavailable": "red", "untested": "dim",
}  # fmt: skip


def cell_line(title: str, row: Line) -> None:
    """Print the result of one run of a cell of a matrix or a sweep."""
    came = summed({"runs": [row], "reason": ""})
    text = Text(f"{title}: ")
    text.append(STATES[came["state"]].word, style=STATE_STYLE.get(came["state"], "yellow"))
    text.append(f"  {came['words']}")
    screen.console().print(text, soft_wrap=True)


def leader_table(table: Mapping[str, Any]) -> None:
    """Print the table of the electors' figures (report/pages/leaders.py), if there are any."""
    if not table["rows"]:
        return
    shown = screen.table(
        "cell", "two at work", "longest overlap", "without a leader", "take-over",
        title="Leaders: median (95 %), longest, and of how many",
    )  # fmt: skip
    for row in table["rows"]:
        took = zip(table["causes"], row["took"], strict=True)
        lines = "\n".join(f"{cause}: {said}" for cause, said in took if said != NONE)
        shown.add_row(row["title"], row["overlaps"], row["longest"], row["without"], lines)
    screen.console().print(shown)
