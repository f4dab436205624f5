"""`fencepost nightly`: run everything within a budget, and compare the outcomes with a baseline."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer
from rich.text import Text

from fencepost.commandline import command, option
from fencepost.harness.campaigns import baseline, issue, nightly
from fencepost.harness.command import screen
from fencepost.harness.command.campaign import How, must_come_from, with_how
from fencepost.harness.command.files import Files
from fencepost.harness.command.options import Results, Seed
from fencepost.harness.command.reporter import line
from fencepost.harness.errors import BadArguments, choose
from fencepost.harness.locked import locked
from fencepost.harness.results.results import root
from fencepost.harness.spec import from_arguments
from fencepost.harness.spec.spec import seconds
from fencepost.report.exports import junit
from fencepost.report.pages import nightly as page

_STYLE = {"changed": "red", "crashed": "red", "unknown": "yellow", "same": "green"}
_SHOWN = 12
_BUDGET = "8h"

Name = Annotated[
    str, typer.Argument(metavar="NIGHT", help="Nightly run: its folder, its TIME, or latest.")
]
BaselineFile = Annotated[
    Path, typer.Option("--baseline", metavar="FILE", help="Baseline: the known outcomes.")
]


@with_how
def run(
    how: How,
    budget: Annotated[
        str | None,
        typer.Option(metavar="TIME", help=f"Time budget of the nightly run. [default: {_BUDGET}]"),
    ] = None,
    only: Annotated[
        str,
        typer.Option(
            metavar="PART,...", help=f"Only these stages, of: {', '.join(nightly.SHARES)}."
        ),
    ] = "",
    baseline_file: BaselineFile = baseline.FILE,
    badge: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also write a badge for shields.io (JSON).")
    ] = None,
    seed: Seed = None,
) -> int:
    """Run suites, a matrix, hunts and the known defects; exit with 1 if an outcome changed."""
    known = baseline.read(baseline_file)
    parts = [
        choose("part", name.strip(), nightly.SHARES) for name in only.split(",") if name.strip()
    ]
    files = Files(how.junit, how.summary, badge)
    files.must_be_writable()
    how.must_fit(how.parallel or 1)
    options = how.passed_on()
    if how.resume is not None:
        given = {"--budget": budget, "--only": only, "--seed": seed} | dict.fromkeys(options, True)
        must_come_from("nightly run", given)
        folder, night = nightly.resumed(how.resume)
    else:
        budget_s = seconds("budget", budget or _BUDGET)
        folder, night = nightly.begin(from_arguments.seed(seed), budget_s, parts, options)
    screen.say(
        f"Nightly run of {night.began}, seed {night.seed}, budget {night.budget_s:g} s: {folder}"
    )
    try:
        with locked(folder):
            carry = partial(_process, how.json)
            nightly.carry_out(folder, night, known, carry, screen.say)
    except BaseException as error:
        _to_files(files, msgspec.to_builtins(night), error)
        if (folder / nightly.FILE).exists():
            resume = command("nightly run", option("resume", folder.name))
            screen.write(f"Some stages have not run; resume with: {resume}")
        raise
    stored = msgspec.to_builtins(night)
    _print_outcomes(stored)
    screen.write(f"again: {page.again(stored)}")
    screen.write(f"report: {folder / 'report.html'}")
    _to_files(files, stored)
    code = baseline.red(night.entries)
    if how.json:
        places = {"folder": str(folder), "report": str(folder / "report.html")}
        rows = {one.key: {"state": one.state, "marks": one.marks} for one in night.entries}
        words = {"kind": "nightly", "words": page.headline(stored)}
        line("result", seed=night.seed, exit_code=code, rows=rows, **places, **words)
    return code


def _process(json: bool, words: Sequence[str], limit_s: float) -> tuple[int, bool]:
    return nightly.process([*words, "--json"] if json else words, limit_s)


def _to_files(files: Files, night: Mapping[str, Any], error: BaseException | None = None) -> None:
    files.write_after(
        error,
        junit=lambda: junit.night(night),
        summary=lambda: page.markdown(night).encode(),
        badge=lambda: f"{json.dumps(page.badge(night))}\n".encode(),
    )


def _print_outcomes(night: Mapping[str, Any]) -> None:
    """Print what changed, baseline and present outcome; then the number of entries in each
    state."""
    changed = [one for one in night["entries"] if one["state"] == "changed"]
    if changed:
        table = screen.table("changed", "baseline", "now", "baseline run", "this run", whole=1)
        for one in changed:
            now = Text("; ".join(one["marks"]), style="red")
            table.add_row(one["key"], page.known(one), now, one["known"].get("run", ""), one["run"])
        screen.console().print(table)
        for one in changed:
            if one["said"]:
                screen.write(f"{one['key']}: {one['said']}")
    for state, (_, about) in page.STATES.items():
        keys = [one["key"] for one in night["entries"] if one["state"] == state]
        if keys and state != "changed":
            text = Text(f"{len(keys)} {state}", style=_STYLE.get(state, ""))
            named = "" if state == "same" else f": {', '.join(keys[:_SHOWN])}"
            more = f" and {len(keys) - _SHOWN} more" if named and len(keys) > _SHOWN else ""
            screen.console().print(
                text.append(f" ({about}){named}{more}", style=""), soft_wrap=True
            )
    for part in night["parts"]:
        if part["why"]:
            screen.write(f"{part['name']}: {part['why']} ({part['command']})")
    screen.write(page.headline(night))


def keep(
    night: Annotated[
        list[str],
        typer.Argument(
            metavar="NIGHT...",
            help="Nightly runs, or single suites, matrices and track records, oldest first.",
        ),
    ],
    baseline_file: BaselineFile = baseline.FILE,
    results: Results = None,
) -> None:
    """Add outcomes to the baseline, and print the changes."""
    found = [nightly.outcomes(name) for name in night]
    known = baseline.read(baseline_file) if baseline_file.exists() else {}
    changes = 0
    for entries, began, seed in found:
        for key, before, after in baseline.merged(known, entries, began, seed):
            changes += 1
            screen.write(f"{key}: {'; '.join(before) or 'new'} -> {'; '.join(after)}")
    baseline.write(baseline_file, known)
    screen.write(f"{changes} changes, {len(known)} outcomes known: {baseline_file}")


def report_issue(
    night: Name = "latest",
    link: Annotated[str, typer.Option(help="Line with a link to the job or the site.")] = "",
    results: Results = None,
) -> None:
    """Open or update one issue if an outcome changed (GITHUB_API_URL, _REPOSITORY, _TOKEN)."""
    stored = msgspec.to_builtins(nightly.read(nightly.find(night)))
    screen.write(issue.report(stored, os.environ, link))


def report(night: Name = "latest", results: Results = None) -> None:
    """Write report.html of a nightly run again."""
    folder = nightly.find(night)
    stored = msgspec.to_builtins(nightly.read(folder))
    screen.write(f"report: {page.render(folder, stored, root())}")


def trend(
    to: Annotated[Path, typer.Argument(metavar="FILE", help="Page to write.")],
    results: Results = None,
) -> None:
    """Write the trend over all nightly runs of the results folder, as one page."""
    folders = nightly.every()
    if not folders:
        raise BadArguments("there is no nightly run yet: `fencepost nightly run` makes one")
    rows = []
    for folder in folders:
        where = os.path.relpath(folder.resolve(), to.parent.resolve())
        rows.append((f"{where}/report.html", msgspec.to_builtins(nightly.read(folder))))
    from fencepost.report.pages.page import write

    screen.write(f"trend: {write(to, 'trend.html', page.trend(rows) | {'back': ''})}")


COMMANDS = {
    "run": run, "baseline": keep, "report-issue": report_issue, "report": report, "trend": trend,
}  # fmt: skip
