"""`fencepost test`: runs one test of one lock.

The options for the settings of a run come from the table of settings (fencepost/settings.py).
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from fencepost.harness.command.files import Files
from fencepost.harness.command.options import (
    Badge,
    ClientImage,
    Elector,
    EndsWith,
    FailOn,
    HostsFile,
    Json,
    Junit,
    LeaveUp,
    LockOptions,
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
from fencepost.harness.command.reporter import reporting
from fencepost.harness.errors import BadArguments
from fencepost.harness.execute import scripted
from fencepost.harness.execute.interrupted import Interrupted
from fencepost.harness.execute.run import run
from fencepost.harness.spec import fail_on as fail_ons
from fencepost.harness.spec import from_arguments
from fencepost.harness.spec.early_stop import ANY
from fencepost.harness.spec.needs import cluster_for, warn_of_numbers
from fencepost.harness.spec.spec import Spec
from fencepost.harness.userlock.resolve import LockRequest
from fencepost.harness.userlock.resolve import resolve as given_lock
from fencepost.harness.userlock.user_lock import UserLock
from fencepost.nemesis.schedule import Scheduled
from fencepost.settings import SETTINGS
from fencepost.workloads.scenarios.scenario import Scenario

_SETTLED = {setting.word for setting in SETTINGS.values()} - {"until", "servers"}
"""The options that --replay and --schedule take from the run or the scenario that they name."""


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
    option: LockOptions = None,
    servers: OwnServers = "",
    ends_with: EndsWith = "",
    promises: Promises = "",
    requirements: Requirements = None,
    program: OwnProgram = "",
    ship: Ship = None,
    elector: Elector = False,
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
            servers, ends_with, requirements, beside, program, ship, client_image, promises, elector
        )
        named = given_lock(lock, own)
        scenario = None if schedule is None else scripted.read(schedule)
        options = from_arguments.pairs(option)
        if scenario is None:
            given = _given(settings, until_violation)
            spec, faults = _described(*named, context, schedule, replay, options, given)
        else:
            spec, faults = _scripted(*named, context, scenario, options, settings), None
        fail_ons.must_be_judged(asked, spec.to_json()["not_checked"])
        reporter.begin(spec, None if faults is None else len(faults))
        warn_of_numbers(spec, reporter.say)
        with cluster_for([spec], reporter.say, leave_up, remote, hosts) as cluster:
            try:
                with reporter.progress(spec) as progress:
                    outcome = run(spec, cluster, progress, scenario, faults)
            except Interrupted as interrupted:
                reporter.verdict(interrupted.outcome, interrupted)
                raise
            # Report before the nodes are removed, because the removal may fail.
            return reporter.verdict(outcome)


def _scripted(
    lock: str,
    own: UserLock | None,
    context: typer.Context,
    scenario: Scenario,
    options: dict[str, str],
    settings: dict[str, Any],
) -> Spec:
    """Return the test of a scenario that was read from a file."""
    _alone("schedule", context, _SETTLED - {"seed"}, "the scenario that it names")
    return scripted.spec(lock or scenario.lock, scenario, options, own, settings.get("seed"))


def _given(settings: dict[str, Any], until_violation: bool) -> dict[str, Any]:
    given = {word: value for word, value in settings.items() if value not in (None, [])}
    if not until_violation:
        return given
    if "until" in given:
        raise BadArguments(
            "--until and --until-violation cannot be combined: the latter means any violation"
        )
    return given | {"until": ANY}


def _described(
    lock: str,
    own: UserLock | None,
    context: typer.Context,
    schedule: Path | None,
    replay: str | None,
    options: dict[str, str],
    given: dict[str, Any],
) -> tuple[Spec, list[Scheduled] | None]:
    """Return the test that the options describe, and its faults if they were given."""
    if replay is not None:
        _alone("replay", context, _SETTLED | {"schedule"}, "the run that it names")
        until = SETTINGS["until"].read(given.get("until", ""))
        return from_arguments.replayed(replay, lock, options, until, own)
    return from_arguments.scheduled(from_arguments.spec(lock, options, given, own), schedule)


def _alone(option: str, context: typer.Context, settled: set[str], what: str) -> None:
    """Raise BadArguments if another option was given that this option determines."""
    for name in context.params:
        source = context.get_parameter_source(name)
        if name in settled and source is not None and source.name == "COMMANDLINE":
            raise BadArguments(
                f"--{option} takes all settings from {what}: omit {name.replace('_', '-')}"
            )
