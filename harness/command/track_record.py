"""`fencepost track-record`: reproduce every known defect of third-party software."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from fencepost.harness.campaigns import kept
from fencepost.harness.campaigns import track_record as record
from fencepost.harness.campaigns.campaign import Campaign, Line
from fencepost.harness.command import screen
from fencepost.harness.command.campaign import How, View, carry_out, with_how
from fencepost.harness.command.exits import EXIT
from fencepost.harness.command.options import Seed
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
    seed: Seed = None,
) -> int:
    if keep is not None:
        kept.must_be_kept(keep, "key")
    given = {"--only": only, "--simulated": simulated, "--seed": seed}
    found = how.resumed("track-record", record.from_json, given)
    if found is None:
        found = Campaign(record.Plan(from_arguments.seed(seed), tuple(only or ()), simulated))
    screen.say(f"{len(found.left(1))} to run, seed {found.plan.seed}")
    try:
        with how.executor() as executor:
            found.begin()
            return carry_out([found], how, _VIEW, executor)
    finally:
        if keep is not None and found.has_begun:
            record.keep(keep, known_defects.read(found.folder))


def _finished(found: Campaign, line: Line) -> None:
    row = {"outcome": NOT_PLAYED, "said": line.get("crashed"), **found.rows[line["row"]], **line}
    text = Text(f"{row['defect']}, {row['where']}: ")
    text.append(row["outcome"], style=_STYLE[row["outcome"]])
    text.append(f"  {row['said']}")
    screen.console().print(text, soft_wrap=True)


def _ended(found: Campaign) -> None:
    table = screen.table("defect", "software", "version", "where", "outcome", whole=1)
    for row in known_defects.read(found.folder):
        outcome = Text(row["outcome"], style=_STYLE[row["outcome"]])
        versions = ", ".join(named_versions(row["versions"]))
        table.add_row(row["defect"], row["software"], versions, row["where"], outcome)
    screen.console().print(table)


def _exit_code(found: Collected) -> int:
    if found.any("failure"):
        return EXIT[False]
    return EXIT["unknown" if found.any("error") else True]


_VIEW = View(_finished, _ended, lambda found: found.folder / LINES, _exit_code, page="rows")
