"""`fencepost bench`: what locks cost."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from fencepost.harness.campaigns import bench as costs
from fencepost.harness.command import screen
from fencepost.harness.command.options import Seed
from fencepost.harness.errors import choose
from fencepost.harness.spec import from_arguments
from fencepost.harness.spec.needs import cluster_for
from fencepost.harness.spec.spec import seconds
from fencepost.report.pages import bench as report
from fencepost.workloads.locks.registry import LOCKS


def bench(
    locks: Annotated[list[str], typer.Argument(help="The locks to measure, against redis.")],
    time: Annotated[str, typer.Option(help="How long each of the three phases takes.")] = "5s",
    seed: Seed = None,
) -> None:
    time_s, number = seconds("time", time), from_arguments.seed(seed)
    names = list(dict.fromkeys([costs.BASELINE, *locks]))
    specs = [costs.spec_of(choose("lock", name, LOCKS), number) for name in names]
    with cluster_for(specs, screen.say) as cluster:
        found = [costs.measure(spec, cluster, time_s, screen.say) for spec in specs]
        # Before the nodes are removed, which may fail.
        command = f"fencepost bench {' '.join(locks)} --time {time_s:g}s --seed {number}"
        folder, stored = costs.store(found, command, cluster.versions)
    _table(report.relative(stored["locks"], costs.BASELINE))
    screen.write(f"report: {report.render(folder)}")


def _table(rows: list[dict[str, Any]]) -> None:
    """Figures of each lock, with the ratio to the baseline's in brackets."""
    table = screen.table(
        "lock", *(title for _, _, title in report.COLUMNS), "round trips: acquire + release",
        title="Costs, with (the ratio to the first)", right=True,
    )  # fmt: skip
    for row in rows:
        trips = f"{row['trips']['acquire']:g} + {row['trips']['release']:g}"
        table.add_row(row["lock"], *(_cell(*cell) for cell in row["cells"]), trips)
    screen.console().print(table)


def _cell(value: float | None, ratio: float) -> str:
    if value is None:
        return "-"
    return f"{value:.3g} ({ratio:.2f})" if value < 1000 else f"{value:,.0f} ({ratio:.2f})"
