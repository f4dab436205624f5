"""Declares the options that several commands share."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any

import typer

from fencepost.setting import FLAG, Setting
from fencepost.settings import SETTINGS
from fencepost.workloads.contract.locktype import PROMISES


def _in_folder(folder: Path | None) -> Path | None:
    """Make this folder the results folder of the command."""
    if folder is not None:
        os.environ["FENCEPOST_RESULTS"] = str(folder)
    return folder


Run = Annotated[str, typer.Argument(help="A run's folder, or TEST, or TEST/TIME.")]
Seed = Annotated[str | None, typer.Option(help=SETTINGS["seed"].help, show_default=False)]
FailOn = Annotated[
    str | None,
    typer.Option(
        "--fail-on",
        metavar="NAME,...",
        help="What determines the exit code: service, clients, data, or names of checkers. "
        "[default: all]",
    ),
]
Junit = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Write the verdicts to this file as JUnit XML.")
]
Summary = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Append the result to this file as Markdown.")
]
Badge = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Write the verdict to this file as SVG badge.")
]
Results = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        callback=_in_folder,
        is_eager=True,
        help="The results folder. [default: FENCEPOST_RESULTS, or results]",
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print only the result.")]
Json = Annotated[
    bool, typer.Option("--json", help="Print one JSON object per line; the last is the result.")
]
Budget = Annotated[
    str | None,
    typer.Option(
        metavar="TIME",
        help="Time budget: start nothing that would end later. A matrix and a sweep start new "
        "rounds within it. [default: no limit, one round]",
    ),
]
Parallel = Annotated[
    int | None,
    typer.Option(
        help="Number of items that run at the same time, each on its own cluster. [default: 1; "
        "with --quick 2]",
        min=1,
        max=4,
    ),
]
Resume = Annotated[
    str | None,
    typer.Option(metavar="RUN", help="Resume one that was stopped: its folder, TIME, or latest."),
]
Engine = Annotated[
    str,
    typer.Option(
        help="Where the items run: local (this machine), or dask (the workers of a scheduler, "
        "machines with Docker)."
    ),
]
Scheduler = Annotated[
    str | None,
    typer.Option(metavar="ADDRESS", help="The address of Dask's scheduler, tcp://HOST:8786."),
]
LeaveUp = Annotated[
    bool, typer.Option("--leave-db-running", help="Keep the nodes running afterwards.")
]
Remote = Annotated[str, typer.Option(help="How to reach nodes: docker, ssh.")]
HostsFile = Annotated[
    Path | None,
    typer.Option("--hosts", help="A TOML file of hosts to use as nodes, by SSH (docs/ssh.md)."),
]
LockOptions = Annotated[
    list[str] | None,
    typer.Option(
        "--option", "-o", help="Option of the lock, NAME=VALUE: `fencepost locks LOCK` shows them."
    ),
]
Servers = Annotated[
    list[str] | None, typer.Option("--server", metavar="KIND=VERSION", help=SETTINGS["server"].help)
]
OwnServers = Annotated[
    str,
    typer.Option(
        metavar="SERVERS",
        help="The servers of a user lock (for example redis:1); with --compose, its services.",
    ),
]
EndsWith = Annotated[
    str,
    typer.Option(
        help="What ends a grant of a user lock, except its release: lease, close, connection "
        "(docs/your-lock.md). [default: depends on the servers]"
    ),
]
Promises = Annotated[
    str,
    typer.Option(
        metavar="NAME,...",
        help=f"Promises of a user lock in addition to exclusion: {', '.join(PROMISES)}, or none "
        "(docs/your-lock.md). [default: those that its class or its program names]",
    ),
]
OwnProgram = Annotated[
    str,
    typer.Option(
        metavar="COMMAND",
        help="A user lock in any language: the command of its client (docs/your-lock.md).",
    ),
]
Ship = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR", help="The folder to send to the clients' nodes; --program runs in it."
    ),
]
Elector = Annotated[
    bool,
    typer.Option("--elector", help="The program is an elector (docs/your-elector.md)."),
]
ClientImage = Annotated[
    str, typer.Option(metavar="IMAGE", help="The image in which the clients of a user lock run.")
]
Requirements = Annotated[
    Path | None,
    typer.Option(
        help="Packages of a user lock: a requirements file, a wheel, or a project's folder."
    ),
]


def with_settings(
    wanted: Collection[str] = SETTINGS, also: Mapping[str, str] = MappingProxyType({})
) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Give a command an option for every setting, or for these, instead of `**settings`.

    `also`: by setting, a sentence that takes the place of its default in the command's help.
    """

    def decorate(command: Callable[..., int]) -> Callable[..., int]:
        signature = inspect.signature(command, eval_str=True)
        own = [one for one in signature.parameters.values() if one.kind is not one.VAR_KEYWORD]
        added = [
            inspect.Parameter(
                setting.word,
                inspect.Parameter.KEYWORD_ONLY,
                default=None,
                annotation=_option(setting, also.get(name, "")),
            )
            for name, setting in SETTINGS.items()
            if name in wanted and setting.options and setting.word not in signature.parameters
        ]
        lock, *rest = own
        command.__signature__ = signature.replace(  # type: ignore[attr-defined]
            parameters=[lock, *[one.replace(kind=one.KEYWORD_ONLY) for one in (*added, *rest)]]
        )
        return command

    return decorate


def _option(setting: Setting, also: str) -> Any:
    help = f"{setting.what}. {also}" if also else setting.help
    if setting.form is FLAG:
        flag = typer.Option(*setting.options, help=help, show_default=False)
        return Annotated[bool | None, flag]
    option = typer.Option(
        *setting.options, help=help, metavar=setting.form.metavar, show_default=False
    )
    return Annotated[list[str] | None if setting.form.several else str | None, option]
