"""`fencepost test`: one test of one lock."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fencepost.harness.command import arguments, screen
from fencepost.harness.command.exits import EXIT
from fencepost.harness.command.options import HostsFile, LeaveUp, Remote, Seed
from fencepost.harness.errors import BadArguments
from fencepost.harness.run.needs import cluster_for
from fencepost.harness.run.run import run
from fencepost.harness.run.spec import ETCD, RESTART, Spec, seconds, validate
from fencepost.nemesis.schedule import Scheduled
from fencepost.workloads.resources.registry import STORES


def test(
    context: typer.Context,
    lock: Annotated[str, typer.Argument(help="The lock to test, redlock say.")] = "",
    nemesis: Annotated[
        str,
        typer.Option(
            help="Faults: FAMILY[:WHERE][/HOW][@INTERVAL][=WEIGHT],...  "
            "`fencepost nemesis list` lists them."
        ),
    ] = "",
    schedule: Annotated[
        Path | None, typer.Option(help="The faults from a file: JSON, or a run's test.json.")
    ] = None,
    replay: Annotated[
        str | None,
        typer.Option(
            help="A stored run's test once more, with the faults at the same offsets; on another "
            "LOCK, if one is named."
        ),
    ] = None,
    until: Annotated[
        str,
        typer.Option(
            metavar="CHECKER,...",
            help="Stop at the first violation that one of these checkers finds, ownership say.",
        ),
    ] = "",
    until_violation: Annotated[
        bool, typer.Option("--until-violation", help="Stop at the first violation of any kind.")
    ] = False,
    guard: Annotated[
        str, typer.Option(help="What the resource checks: `fencepost guards` lists them.")
    ] = "none",
    store: Annotated[
        str, typer.Option(help=f"Where the resource is kept: {', '.join(STORES)}.")
    ] = "",
    shared: Annotated[
        float, typer.Option(help="Which share of the holds is shared, for locks with that mode.")
    ] = 0.0,
    locks: Annotated[
        int, typer.Option(help="Locks, each with a resource of its own; all clients use all.")
    ] = 1,
    etcd: Annotated[str, typer.Option(help=f"The servers' version: {', '.join(ETCD)}.")] = "3.5",
    time: Annotated[str, typer.Option("--time", "--time-limit", help="How long, 60s say.")] = "60s",
    seed: Seed = None,
    concurrency: Annotated[int, typer.Option(help="Clients, one a node.")] = 5,
    ttl: Annotated[str, typer.Option(help="The lease of a grant.")] = "2s",
    interval: Annotated[str, typer.Option(help="A family's faults are about so far apart.")] = "5s",
    persistence: Annotated[str, typer.Option(help="Redis: none, everysec, always.")] = "none",
    restart: Annotated[
        str, typer.Option(help=f"When a crashed server is back: {', '.join(RESTART)}, or a time.")
    ] = "at-once",
    failed_release: Annotated[
        str, typer.Option(help="What a release that failed did: ended, nothing.")
    ] = "ended",
    option: Annotated[
        list[str] | None,
        typer.Option(
            "--option",
            "-o",
            help="The lock's own, NAME=VALUE: `fencepost locks LOCK` shows them.",
        ),
    ] = None,
    leave_up: LeaveUp = False,
    remote: Remote = "docker",
    hosts: HostsFile = None,
) -> int:
    faults: list[Scheduled] | None
    stops = arguments.until(until, until_violation)
    if replay is not None:
        arguments.alone("replay", context, arguments.BESIDE)
        spec, faults = arguments.replayed(replay, lock, option or [], stops)
    else:
        if not lock:
            raise BadArguments("which LOCK? `fencepost locks` lists them")
        spec = Spec(
            name=lock,
            lock=lock,
            options=arguments.lock_options(lock, option or []),
            guard=guard,
            store=store,
            shared=shared,
            locks=locks,
            etcd=etcd,
            nemesis=tuple(dict.fromkeys(e.strip() for e in nemesis.split(",") if e.strip())),
            time_s=seconds("time", time),
            seed=arguments.seed(seed),
            concurrency=concurrency,
            ttl_ms=arguments.ms("TTL", ttl),
            interval_s=seconds("interval", interval),
            persistence=persistence,
            restart=restart,
            failed_release=failed_release,
            until=stops,
        )
        spec, faults = arguments.scheduled(validate(spec), schedule)
    screen.say(f"Testing {spec.lock}, seed {spec.seed}" + arguments.of_schedule(faults))
    with (
        cluster_for([spec], screen.say, leave_up, remote, hosts) as cluster,
        screen.progress(spec.name) as progress,
    ):
        outcome = run(spec, cluster, progress, schedule=faults)
    screen.verdict(outcome)
    return EXIT[outcome.valid]
