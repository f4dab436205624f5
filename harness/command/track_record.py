"""`fencepost track-record`: every defect that was found in software which people use, once more."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from fencepost.harness.campaigns import track_record as record
from fencepost.harness.cluster.cluster import Cluster
from fencepost.harness.command import screen
from fencepost.harness.command.exits import EXIT
from fencepost.harness.command.options import HostsFile, Remote, Results, Seed
from fencepost.harness.execute.run import run
from fencepost.harness.judge.judge import Outcome
from fencepost.harness.locked import locked
from fencepost.harness.spec import from_arguments
from fencepost.harness.spec.needs import cluster_for
from fencepost.harness.spec.spec import Spec
from fencepost.report.words.settings import named
from fencepost.workloads.scenarios.scenario import Scenario

_STYLE = {record.SEEN: "green", record.NOT_SEEN: "red", record.NOT_PLAYED: "yellow"}


def track_record(
    only: Annotated[
        list[str] | None, typer.Option(help="Only defects whose name begins so.")
    ] = None,
    simulated: Annotated[
        bool, typer.Option("--simulated", help="Only what needs no servers, and so no Docker.")
    ] = False,
    keep: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Also put the rows into this file, in the place of those of before "
            "(docs/track-record.json).",
        ),
    ] = None,
    seed: Seed = None,
    results: Results = None,
    remote: Remote = "docker",
    hosts: HostsFile = None,
) -> int:
    if keep is not None:
        record.must_be_kept(keep)
    number = from_arguments.seed(seed)
    found = record.entries(only or [], number)
    chosen = [one for one in found if one.spec is None or not simulated]
    screen.say(f"{len(chosen)} to play, seed {number}")
    rows: list[dict[str, Any]] = []
    folder = record.create()
    specs = [one.spec for one in chosen if one.spec is not None]
    try:
        with locked(folder), ExitStack() as stack:
            cluster: Cluster | None = None
            # What needs no servers comes first: it is there before the nodes are.
            for entry in sorted(chosen, key=lambda one: one.spec is not None):
                if entry.spec is not None and cluster is None:
                    cluster = stack.enter_context(
                        cluster_for(specs, screen.say, False, remote, hosts)
                    )
                rows.append(record.play(entry, folder, cluster, _player(entry, cluster)))
                record.write(folder, rows)
                _say(rows[-1])
                if rows[-1]["outcome"] == record.NOT_PLAYED:
                    # Something of it may be left.
                    stack.close()
                    cluster = None
    finally:
        if keep is not None and rows:
            record.keep(keep, rows)
    _table(rows)
    screen.write(f"rows: {folder / record.FILE}")
    if record.changed(rows):
        return EXIT[False]
    return EXIT["unknown" if any(row["outcome"] != record.SEEN for row in rows) else True]


def _player(entry: record.Entry, cluster: Cluster | None) -> record.Play:
    def play(spec: Spec, scenario: Scenario | None) -> Outcome:
        assert cluster is not None
        with screen.progress(entry.defect.name) as progress:
            return run(spec, cluster, progress, scenario)

    return play


def _say(row: dict[str, Any]) -> None:
    """One line as soon as a defect was played."""
    text = Text(f"{row['defect']}, {row['where']}: ")
    text.append(row["outcome"], style=_STYLE[row["outcome"]])
    text.append(f"  {row['said']}")
    screen.console().print(text, soft_wrap=True)


def _table(rows: list[dict[str, Any]]) -> None:
    table = screen.table("defect", "software", "version", "where", "outcome", whole=1)
    for row in rows:
        outcome = Text(row["outcome"], style=_STYLE[row["outcome"]])
        versions = ", ".join(named(row["versions"]))
        table.add_row(row["defect"], row["software"], versions, row["where"], outcome)
    screen.console().print(table)
