"""`fencepost test`: one test of one lock.

Its options for what may be set of a run come from the table of settings (fencepost/settings.py).
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from fencepost.harness.command.options import (
    Badge,
    ClientImage,
    EndsWith,
    FailOn,
    HostsFile,
    Json,
    Junit,
    LeaveUp,
    OwnProgram,
    OwnServers,
    Quiet,
    Remote,
    Requirements,
    Results,
    Ship,
    Summary,
    with_settings,
)
from fencepost.harness.command.reporter import Files, telling
from fencepost.harness.errors import BadArguments
from fencepost.harness.execute import scripted
from fencepost.harness.execute.interrupted import Interrupted
from fencepost.harness.execute.run import run
from fencepost.harness.spec import fail_on as fail_ons
from fencepost.harness.spec import from_arguments
from fencepost.harness.spec.early_stop import ANY
from fencepost.harness.spec.needs import cluster_for
from fencepost.harness.spec.spec import Spec
from fencepost.harness.userlock.resolve import Asked
from fencepost.harness.userlock.resolve import given as given_lock
from fencepost.harness.userlock.user_lock import Own
from fencepost.nemesis.schedule import Scheduled
from fencepost.settings import SETTINGS
from fencepost.workloads.scenarios.scenario import Scenario

# What may be given beside --replay, which takes all else from its run.
_BESIDE = (
    "lock",
    "program",
    "ship",
    "client_image",
    "replay",
    "until",
    "until_violation",
    "option",
    "servers",
    "ends_with",
    "requirements",
    "remote",
    "hosts",
    "leave_up",
    "fail_on",
    "junit",
    "quiet",
    "as_json",
    "summary",
    "badge",
    "results",
)


@with_settings()
def test(
    lock: Annotated[
        str, typer.Argument(help="The lock to test: redlock, say, or your own: mylock.py:MyLock.")
    ] = "",
    context: typer.Context = None,  # type: ignore[assignment]
    until_violation: Annotated[
        bool, typer.Option("--until-violation", help="Stop at the first violation of any kind.")
    ] = False,
    schedule: Annotated[
        Path | None,
        typer.Option(
            help="The faults from a file: JSON, or a run's test.json; or the scenario that a hunt "
            "wrote (schedule.json)."
        ),
    ] = None,
    replay: Annotated[
        str | None,
        typer.Option(
            help="A stored run's test once more, with the faults at the same offsets; on another "
            "LOCK, if one is named."
        ),
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option(
            "--option", "-o", help="The lock's own, NAME=VALUE: `fencepost locks LOCK` shows them."
        ),
    ] = None,
    servers: OwnServers = "",
    ends_with: EndsWith = "",
    requirements: Requirements = None,
    program: OwnProgram = "",
    ship: Ship = None,
    client_image: ClientImage = "",
    fail_on: FailOn = None,
    junit: Junit = None,
    summary: Summary = None,
    badge: Badge = None,
    results: Results = None,
    quiet: Quiet = False,
    as_json: Json = False,
    leave_up: LeaveUp = False,
    remote: Remote = "docker",
    hosts: HostsFile = None,
    **settings: Any,
) -> int:
    asked = fail_ons.read(fail_on)
    with telling(quiet, as_json, Files(junit, summary, badge), asked) as told:
        beside = from_arguments.beside(servers, settings)
        own = Asked(servers, ends_with, requirements, beside, program, ship, client_image)
        named = given_lock(lock, own)
        scenario = None if schedule is None else scripted.read(schedule)
        if scenario is None:
            spec, faults = _described(
                named, context, until_violation, schedule, replay, option, settings
            )
        else:
            spec, faults = _scripted(named, context, scenario, option, settings), None
        fail_ons.must_be_judged(asked, spec.to_json()["not_checked"])
        told.begin(spec, None if faults is None else len(faults))
        with cluster_for([spec], told.say, leave_up, remote, hosts) as cluster:
            try:
                with told.progress(spec) as progress:
                    outcome = run(spec, cluster, progress, scenario, faults)
            except Interrupted as interrupted:
                told.verdict(interrupted.outcome)
                raise
            # Before the nodes are removed: that may fail, and this be the last that is said.
            return told.verdict(outcome)


def _scripted(
    named: tuple[str, Own | None],
    context: typer.Context,
    scenario: Scenario,
    option: list[str] | None,
    settings: dict[str, Any],
) -> Spec:
    """The test of a scenario that stands in a file."""
    _alone("schedule", context, (*_BESIDE, "schedule", "seed"), "the scenario that it names")
    lock, own = named
    lock = lock or scenario.lock
    return scripted.spec(
        lock, scenario, from_arguments.pairs(option or []), own, settings.get("seed")
    )


def _described(
    named: tuple[str, Own | None],
    context: typer.Context,
    until_violation: bool,
    schedule: Path | None,
    replay: str | None,
    option: list[str] | None,
    settings: dict[str, Any],
) -> tuple[Spec, list[Scheduled] | None]:
    """The test that the options describe, and its faults where they were given. `named`: the lock,
    and what there is to know of it where it is in no registry."""
    lock, own = named
    given = {word: value for word, value in settings.items() if value not in (None, [])}
    if until_violation:
        if "until" in given:
            raise BadArguments(
                "--until and --until-violation exclude one another: the latter means any violation"
            )
        given["until"] = ANY
    options = from_arguments.pairs(option or [])
    if replay is not None:
        _alone("replay", context)
        until = SETTINGS["until"].read(given.get("until", ""))
        return from_arguments.replayed(replay, lock, options, until, own)
    return from_arguments.scheduled(from_arguments.spec(lock, options, given, own), schedule)


def _alone(
    option: str,
    context: typer.Context,
    beside: tuple[str, ...] = _BESIDE,
    what: str = "the run that it names",
) -> None:
    """BadArguments where something was given that the option decides already."""
    for name in context.params:
        source = context.get_parameter_source(name)
        if name not in beside and source is not None and source.name == "COMMANDLINE":
            raise BadArguments(
                f"--{option} takes all from {what}: leave {name.replace('_', '-')} out"
            )
