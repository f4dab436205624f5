"""`fencepost track-record`: reproduce every known defect of third-party software.

With `--versions`: play rows of the register on several versions of their package.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from fencepost.harness.campaigns import kept
from fencepost.harness.campaigns import track_record as record
from fencepost.harness.campaigns import versions as matrix
from fencepost.harness.campaigns.campaign import Campaign, Line
from fencepost.harness.command import screen
from fencepost.harness.command.campaign import How, View, carry_out, with_how
from fencepost.harness.command.exits import EXIT
from fencepost.harness.command.options import Seed
from fencepost.harness.errors import BadArguments
from fencepost.harness.spec import from_arguments
from fencepost.report import known_defects
from fencepost.report.campaign_files import LINES
from fencepost.report.exports.batches import Collected
from fencepost.report.known_defects import NOT_PLAYED
from fencepost.report.words.settings import named_versions

_STYLE = {record.SEEN: "green", record.NOT_SEEN: "red", NOT_PLAYED: "yellow"}


@with_how
def track_record(
    how: How,
    only: Annotated[
        list[str] | None, typer.Option(help="Only defects whose name begins with this prefix.")
    ] = None,
    simulated: Annotated[
        bool, typer.Option("--simulated", help="Only defects reproduced in simulation (no Docker).")
    ] = False,
    keep: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Also update this file with the new results (docs/track-record.json).",
        ),
    ] = None,
    versions: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VERSIONS",
            help="Instead play the register's rows of a package on these versions, each in an "
            "environment of its own (no Docker): redis-py=5..8, redis=5.0.8,6.4.0.",
        ),
    ] = None,
    seed: Seed = None,
) -> int:
    if versions:
        _must_be_alone({"--simulated": simulated, "--keep": keep, "--seed": seed})
    if keep is not None:
        kept.must_be_kept(keep, "key")
    given = {"--only": only, "--simulated": simulated, "--seed": seed,
             "--versions": versions}  # fmt: skip
    found = how.resumed("track-record", _plan, given)
    if found is None and versions:
        found = Campaign(matrix.Plan(tuple(versions), tuple(only or ())))
    elif found is None:
        found = Campaign(record.Plan(from_arguments.seed(seed), tuple(only or ()), simulated))
    screen.say(f"{len(found.left(1))} to run, seed {found.plan.seed}")
    try:
        with how.executor() as executor:
            found.begin()
            return carry_out([found], how, _VIEW, executor)
    finally:
        if keep is not None and found.has_begun:
            record.keep(keep, known_defects.read(found.folder))


def _must_be_alone(given: Mapping[str, Any]) -> None:
    for word, value in given.items():
        if value:
            raise BadArguments(f"{word} cannot be combined with --versions")


def _plan(stored: Mapping[str, Any]) -> record.Plan | matrix.Plan:
    return matrix.from_json(stored) if "asked" in stored else record.from_json(stored)


def _finished(found: Campaign, line: Line) -> None:
    row = {"outcome": NOT_PLAYED, "said": line.get("crashed"), **found.rows[line["row"]], **line}
    text = Text(f"{row['defect']}, {row['where']}: ")
    text.append(row["outcome"], style=_STYLE[row["outcome"]])
    text.append(f"  {row['said']}")
    screen.console().print(text, soft_wrap=True)


def _ended(found: Campaign) -> None:
    if isinstance(found.plan, matrix.Plan):
        _by_version(found)
        return
    table = screen.table("defect", "software", "version", "where", "outcome", whole=1)
    for row in known_defects.read(found.folder):
        outcome = Text(row["outcome"], style=_STYLE[row["outcome"]])
        versions = ", ".join(named_versions(row["versions"]))
        table.add_row(row["defect"], row["software"], versions, row["where"], outcome)
    screen.console().print(table)


def _by_version(found: Campaign) -> None:
    """Print a table of rows and versions for each package, and the rows that cannot be played."""
    played = known_defects.read(found.folder)
    for package in dict.fromkeys(row["where"].split()[0] for row in played):
        screen.console().print(_versions([row for row in played
                                          if row["where"].split()[0] == package]))  # fmt: skip
    for row in found.rows.values():
        if row.get("reason"):
            screen.say(f"{row['defect']}: {NOT_PLAYED}: {row['reason']}")


def _versions(played: Sequence[Mapping[str, Any]]) -> Table:
    named = {row["where"]: row["where"] for row in played}
    named |= {row["where"]: named_versions(row["versions"])[0] for row in played if row["versions"]}
    table = screen.table("row", *named.values(), whole=1)
    for defect in dict.fromkeys(row["defect"] for row in played):
        its = {row["where"]: row["outcome"] for row in played if row["defect"] == defect}
        outcomes = [its.get(where, "") for where in named]
        table.add_row(defect, *(Text(one, style=_STYLE.get(one, "")) for one in outcomes))
    return table


def _exit_code(found: Collected) -> int:
    if found.any("failure"):
        return EXIT[False]
    return EXIT["unknown" if found.any("error") else True]


_VIEW = View(_finished, _ended, lambda found: found.folder / LINES, _exit_code, page="rows")
