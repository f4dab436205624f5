"""`fencepost test`: runs one test of one lock.

The options for the settings of a run come from the table of settings (fencepost/settings.py).
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
    Promises,
    Quiet,
    Remote,
    Requirements,
    Results,
    Ship,
    Summary,
    with_settings,
)
from fencepost.harness.command.reporter import Files, reporting
from fencepost.harness.errors import BadArguments
from fencepost.harness.execute import scripted
from fencepost.harness.execute.interrupted import Interrupted
from fencepost.harness.execute.run import run
from fencepost.harness.spec import fail_on as fail_ons
from fencepost.harness.spec import from_arguments
from fencepost.harness.spec.early_stop import ANY
from fencepost.harness.spec.needs import cluster_for
from fencepost.harness.spec.spec import Spec
from fencepost.harness.userlock.resolve import LockRequest
from fencepost.harness.userlock.resolve import resolve as given_lock
from fencepost.harness.userlock.user_lock import UserLock
from fencepost.nemesis.schedule import Scheduled
from fencepost.settings import SETTINGS
from fencepost.workloads.scenarios.scenario import Scenario

# The options that can be combined with --replay, which takes all other settings from its run.
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
    "promises",
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
        str,
        typer.Argument(
            help="The lock to test: a name (redlock) or a user lock (mylock.py:MyLock)."
        ),
    ] = "",
    context: typer.Context = None,  # type: ignore[assignment]
    until_violation: Annotated[
        bool, typer.Option("--until-violation", help="Stop at the first violation of any kind.")
    ] = False,
    schedule: Annotated[
        Path | None,
        typer.Option(
            help="Read the faults from a file (JSON, or the test.json of a run), or the scenario "
            "of a hunt (schedule.json)."
        ),
    ] = None,
    replay: Annotated[
        str | None,
        typer.Option(
            help="Repeat the test of a stored run with the faults at the same offsets, optionally "
            "with another LOCK."
        ),
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option(
            "--option", "-o", help="An option of the lock, NAME=VALUE (`fencepost locks LOCK`)."
        ),
    ] = None,
    servers: OwnServers = "",
    ends_with: EndsWith = "",
    promises: Promises = "",
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
    with reporting(quiet, as_json, Files(junit, summary, badge), asked) as reporter:
        beside = from_arguments.beside(servers, settings)
        own = LockRequest(
            servers, ends_with, requirements, beside, program, ship, client_image, promises
        )
        named = given_lock(lock, own)
        scenario = None if schedule is None else scripted.read(schedule)
        if scenario is None:
            spec, faults = _described(
                named, context, until_violation, schedule, replay, option, settings
            )
        else:
            spec, faults = _scripted(named, context, scenario, option, settings), None
        fail_ons.must_be_judged(asked, spec.to_json()["not_checked"])
        reporter.begin(spec, None if faults is None else len(faults))
        with cluster_for([spec], reporter.say, leave_up, remote, hosts) as cluster:
            try:
                with reporter.progress(spec) as progress:
                    outcome = run(spec, cluster, progress, scenario, faults)
            except Interrupted as interrupted:
                reporter.verdict(interrupted.outcome)
                raise
            # Report before the nodes are removed, because the removal may fail.
            return reporter.verdict(outcome)


def _scripted(
    named: tuple[str, UserLock | None],
    context: typer.Context,
    scenario: Scenario,
    option: list[str] | None,
    settings: dict[str, Any],
) -> Spec:
    """Return the test of a scenario that was read from a file."""
    _alone("schedule", context, (*_BESIDE, "schedule", "seed"), "the scenario that it names")
    lock, own = named
    lock = lock or scenario.lock
    return scripted.spec(
        lock, scenario, from_arguments.pairs(option or []), own, settings.get("seed")
    )


def _described(
    named: tuple[str, UserLock | None],
    context: typer.Context,
    until_violation: bool,
    schedule: Path | None,
    replay: str | None,
    option: list[str] | None,
    settings: dict[str, Any],
) -> tuple[Spec, list[Scheduled] | None]:
    """Return the test that the options describe, and its faults if they were given.

    `named`: the lock, and its Own if it is a user lock.
    """
    lock, own = named
    given = {word: value for word, value in settings.items() if value not in (None, [])}
    if until_violation:
        if "until" in given:
            raise BadArguments(
                "--until and --until-violation cannot be combined: the latter means any violation"
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
    """Raise BadArguments if another option was given that this option determines."""
    for name in context.params:
        source = context.get_parameter_source(name)
        if name not in beside and source is not None and source.name == "COMMANDLINE":
            raise BadArguments(
                f"--{option} takes all settings from {what}: omit {name.replace('_', '-')}"
            )
