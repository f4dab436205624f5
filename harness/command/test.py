"""`fencepost test`: one test of one lock.

Its options for what may be set of a run come from the table of settings (fencepost/settings.py).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from fencepost.harness.command import screen
from fencepost.harness.command.exits import EXIT
from fencepost.harness.command.options import HostsFile, LeaveUp, Remote
from fencepost.harness.errors import BadArguments
from fencepost.harness.run import written
from fencepost.harness.run.early_stop import ANY
from fencepost.harness.run.needs import cluster_for
from fencepost.harness.run.run import run
from fencepost.nemesis.schedule import Scheduled
from fencepost.setting import Setting
from fencepost.settings import SETTINGS

# What may be given beside --replay, which takes all else from its run.
_BESIDE = ("lock", "replay", "until", "until_violation", "option", "remote", "hosts", "leave_up")


def _with_settings(command: Callable[..., int]) -> Callable[..., int]:
    """The command with an option for every setting, in the place of `**settings`."""
    signature = inspect.signature(command, eval_str=True)
    own = [one for one in signature.parameters.values() if one.kind is not one.VAR_KEYWORD]
    added = [
        inspect.Parameter(
            setting.word, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=_option(setting)
        )
        for setting in SETTINGS.values()
        if setting.options
    ]
    lock, *rest = own
    command.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[lock, *[one.replace(kind=one.KEYWORD_ONLY) for one in (*added, *rest)]]
    )
    return command


def _option(setting: Setting) -> Any:
    option = typer.Option(
        *setting.options, help=setting.help, metavar=setting.form.metavar, show_default=False
    )
    return Annotated[list[str] | None if setting.form.several else str | None, option]


@_with_settings
def test(
    lock: Annotated[str, typer.Argument(help="The lock to test, redlock say.")] = "",
    context: typer.Context = None,  # type: ignore[assignment]
    until_violation: Annotated[
        bool, typer.Option("--until-violation", help="Stop at the first violation of any kind.")
    ] = False,
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
    option: Annotated[
        list[str] | None,
        typer.Option(
            "--option", "-o", help="The lock's own, NAME=VALUE: `fencepost locks LOCK` shows them."
        ),
    ] = None,
    leave_up: LeaveUp = False,
    remote: Remote = "docker",
    hosts: HostsFile = None,
    **settings: Any,
) -> int:
    faults: list[Scheduled] | None
    given = {word: value for word, value in settings.items() if value not in (None, [])}
    if until_violation:
        if "until" in given:
            raise BadArguments(
                "--until and --until-violation exclude one another: the latter means any violation"
            )
        given["until"] = ANY
    options = written.pairs(option or [])
    if replay is not None:
        _alone("replay", context)
        until = SETTINGS["until"].read(given.get("until", ""))
        spec, faults = written.replayed(replay, lock, options, until)
    else:
        spec, faults = written.scheduled(written.spec(lock, options, given), schedule)
    told = "" if faults is None else f", {len(faults)} faults as scheduled"
    screen.say(f"Testing {spec.lock}, seed {spec.seed}{told}")
    with cluster_for([spec], screen.say, leave_up, remote, hosts) as cluster:
        with screen.progress(spec.name) as progress:
            outcome = run(spec, cluster, progress, schedule=faults)
        # Before the nodes are removed: that may fail, and this be the last that is said.
        screen.verdict(outcome)
    return EXIT[outcome.valid]


def _alone(option: str, context: typer.Context) -> None:
    """BadArguments where something was given that the option decides already."""
    for name in context.params:
        source = context.get_parameter_source(name)
        if name not in _BESIDE and source is not None and source.name == "COMMANDLINE":
            raise BadArguments(
                f"--{option} takes all from the run that it names: leave {name.replace('_', '-')} "
                "out"
            )
