"""`fencepost defects`: the catalogue of lock defects, and who finds them."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from fencepost.harness.campaigns import defects as catalogue
from fencepost.harness.campaigns import kept
from fencepost.harness.campaigns.campaign import Campaign, Line
from fencepost.harness.campaigns.defects import SEEDS, WAYS, Lanes, Plan
from fencepost.harness.command import screen
from fencepost.harness.command.campaign import How, View, carry_out, with_how
from fencepost.harness.command.exits import CRASHED, EXIT
from fencepost.harness.command.options import Seed
from fencepost.harness.errors import BadArguments, choose
from fencepost.harness.spec import from_arguments
from fencepost.report import defect_scores
from fencepost.report.defect_scores import Cell
from fencepost.report.exports.batches import Collected
from fencepost.report.pages import defects as page
from fencepost.workloads.contract.catalogue import TWIN, Listed
from fencepost.workloads.contract.defect import FAMILIES

_STYLE = {"found": "green", "partly": "yellow", "missed": "red", "cannot": "dim",
          "not played": "yellow"}  # fmt: skip
_ROUNDS = 2


@with_how
def defects(
    how: How,
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME", help="Only these defects, or the defects of these families."
        ),
    ] = None,
    play: Annotated[
        bool, typer.Option("--play", help="Play each defect, and show which are found.")
    ] = False,
    by: Annotated[
        str,
        typer.Option(
            metavar="WAY,...",
            help="How to play: history (long simulated histories), hunt (fencepost hunt), servers "
            "(fencepost test on real servers). [default: all]",
        ),
    ] = "",
    seeds: Annotated[
        int | None,
        typer.Option(
            min=1, max=100, help=f"Number of seeds for histories and hunts. [default: {SEEDS}]"
        ),
    ] = None,
    seed: Seed = None,
    keep: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Also update this file with the new results (docs/defects.json)."
        ),
    ] = None,
) -> int:
    given = {"NAME": names, "--by": by, "--seeds": seeds, "--seed": seed}
    if keep is not None:
        kept.must_be_kept(keep, "defect", "defects", "cells")
    found = how.resumed("defects", catalogue.from_json, given)
    if found is None and not play:
        _must_only_list({"--by": by, "--seeds": seeds, "--seed": seed, "--keep": keep})
        _list(catalogue.chosen(names or ()))
        return 0
    if found is None:
        ways = [choose("way", one.strip(), WAYS) for one in by.split(",") if one.strip()]
        plan = Plan(
            from_arguments.seed(seed), tuple(names or ()), tuple(ways or WAYS), seeds or SEEDS
        )
        catalogue.chosen(plan.names)
        found = Campaign(plan)
    left = len(found.left(1)) + len(found.left(2))
    screen.say(f"{left} to play, seed {found.plan.seed}")
    try:
        with how.executor() as clusters:
            if how.scheduler:
                return carry_out([found], how, _VIEW, clusters, _ROUNDS)
            with closing(Lanes(found, clusters, how.parallel)) as lanes:
                return carry_out([found], how, _VIEW, lanes, _ROUNDS)
    finally:
        if keep is not None and found.has_begun:
            catalogue.keep(keep, found.folder)


def _must_only_list(options: Mapping[str, object]) -> None:
    for word, value in options.items():
        if value:
            raise BadArguments(f"{word} is for a play: add --play")


def _list(found: Mapping[str, Listed]) -> None:
    """Print the defects by family: the sentence, the checker, and the faults that expose it."""
    for family, title in FAMILIES.items():
        mine = [one.defect for one in found.values() if one.defect.family == family]
        if not mine:
            continue
        screen.write(f"{title} ({family})")
        table = screen.table("defect", "what it does", "checker", "faults", whole=1)
        for one in mine:
            faults = ", ".join(one.faults) or "none"
            table.add_row(one.name, one.what, one.checker or f"none: {one.hidden}", faults)
        screen.console().print(table)


def _finished(found: Campaign, line: Line) -> None:
    row = found.rows[line["row"]]
    words = f"{row['defect']}, {row['way']}, {row['class']}, seed {line['seed']}: "
    text = Text(words)
    text.append(*_outcome(row["class"], line))
    screen.console().print(text, soft_wrap=True)


def _outcome(lock: str, line: Line) -> tuple[str, str]:
    """Return the outcome of one play in words, and its style."""
    if why := line.get("crashed") or line["cannot"]:
        return str(why), "yellow"
    if line["accused"]:
        return f"accused by {', '.join(line['accused'])}", "red"
    if lock == TWIN:
        return "not accused", "green"
    return ("found", "green") if line["found"] else ("missed", "red")


def _ended(found: Campaign) -> None:
    rows = defect_scores.table(found.folder)
    ways = [way for way in defect_scores.WAYS if any(way in row.cells for row in rows)]
    table = screen.table("defect", *ways, whole=1)
    for row in rows:
        table.add_row(row.defect, *(_cell(row.cells.get(way)) for way in ways))
    screen.console().print(table)
    for way, score in defect_scores.scores(rows).items():
        screen.write(f"{way}: {score.words}")


def _cell(cell: Cell | None) -> Text:
    if cell is None:
        return Text("-", style="dim")
    return Text(cell.words, style="bold red" if cell.wrong else _STYLE[cell.state])


def _exit_code(found: Collected) -> int:
    """Return 1 if a checker says something untrue, and 255 if plays crashed. A missed defect is no
    failure: it is the score."""
    if found.any("failure"):
        return EXIT[False]
    return CRASHED if found.any("error") else EXIT[True]


_VIEW = View(_finished, _ended, lambda found: page.render(found.folder), _exit_code)
