"""The command line: every command by name, of which only the one that is called is imported.

So `fencepost --help` loads no Docker, no SSH and no table library. A line of COMMANDS is a
command: the module that has it, and its line in the help.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Annotated, Any

import typer

from fencepost.harness.command.exits import BAD_ARGUMENTS, CRASHED, INTERRUPTED
from fencepost.harness.errors import BadArguments, Crashed
from fencepost.harness.interrupts import interrupt_on_signals


@dataclass(frozen=True)
class Command:
    """`home` is "module:function" in this folder, or a module that has a group of commands."""

    name: str
    home: str
    what: str
    takes_all: bool = False


COMMANDS = (
    Command(
        "test",
        "test:test",
        "Test a lock: clients write under it, faults strike; then judge.",
    ),
    Command(
        "suite",
        "suite:suite",
        "Run scenarios, each against its published outcome.",
    ),
    Command(
        "bench",
        "bench:bench",
        "Measure what locks cost, without faults, against one Redis.",
    ),
    Command("locks", "lists:locks", "List the locks, or show one with its options."),
    Command(
        "guards",
        "lists:guards",
        "List every guard by which a resource accepts writes.",
    ),
    Command(
        "analyze",
        "reading:analyze",
        "Judge a stored history again, also a killed run's.",
    ),
    Command("report", "reading:report", "Write a run's report.html again."),
    Command("heal", "heal:heal", "Undo and remove whatever a killed run left behind."),
    Command(
        "lincheck",
        "lists:lincheck",
        "Check histories for linearizability (see `lincheck --help`).",
        takes_all=True,
    ),
    Command("nemesis", "nemesis", "List the faults."),
    Command("cluster", "cluster", "Bring the cluster of containers up and down, apart from tests."),
)


def app(called: str) -> typer.Typer:
    """The command line: the called command with its options, all others by name only."""
    made = _typer("Tests distributed locks: real servers, real faults, a verdict from the history.")
    made.callback()(_main)
    for command in COMMANDS:
        module, _, function = command.home.partition(":")
        found = _load(module) if command.name == called else None
        if function:
            settings = {"allow_extra_args": True, "ignore_unknown_options": True}
            made.command(
                command.name,
                help=command.what,
                context_settings=settings if command.takes_all else None,
            )(getattr(found, function) if found else _not_called)
        else:
            group = _typer(command.what)
            for name, action in (found.COMMANDS if found else {"": _not_called}).items():
                group.command(name)(action)
            made.add_typer(group, name=command.name)
    return made


def _typer(what: str) -> typer.Typer:
    return typer.Typer(
        help=what,
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
    )


def _load(module: str) -> Any:
    return import_module(f"fencepost.harness.command.{module}")


def _not_called() -> None:
    """Takes the place of a command that is not called, only listed."""


def _main(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and end.", is_eager=True)
    ] = False,
) -> None:
    """`--version` stands here for the help alone: harness/__main__.py answers it."""


def run() -> int:
    """Carry out the command line, and return the exit code."""
    interrupt_on_signals()
    words = sys.argv[1:]
    try:
        code = app(words[0] if words else "")(standalone_mode=False)
    except (KeyboardInterrupt, typer.Abort):
        print("fencepost: interrupted; what it had started is removed", file=sys.stderr)
        return INTERRUPTED
    except typer.Exit as error:
        return error.exit_code
    except Exception as error:
        return _failed(error)
    return code if isinstance(code, int) else 0


def _failed(error: Exception) -> int:
    """Print what went wrong, and return the exit code, which is never that of a verdict."""
    # What raises them has imported these already.
    from fencepost.checker.history import HistoryError
    from fencepost.harness.remote.remote import RemoteError
    from fencepost.registry import BadPlugin
    from fencepost.report.stored import ReportError

    match error:
        case BadArguments() | BadPlugin() | HistoryError() | ReportError():
            return _say(error, BAD_ARGUMENTS)
        case Crashed() | RemoteError():
            return _say(error, CRASHED)
        case OSError():
            where = error.filename or "a file of the run"
            return _say(f"{where}: {error.strerror or error}", CRASHED)
    # click's own errors of usage: it would exit with 2, which means "unknown" here.
    usage: Callable[[], str] | None = getattr(error, "format_message", None)
    if usage is not None:
        if type(error).__name__ == "NoArgsIsHelpError":
            print(usage())
            return BAD_ARGUMENTS
        return _say(usage(), BAD_ARGUMENTS)
    # Python would exit with 1, which means "invalid" here.
    traceback.print_exception(error)
    return _say("crashed: this is a defect of fencepost's own", CRASHED)


def _say(error: object, code: int) -> int:
    print(f"fencepost: {error}", file=sys.stderr)
    return code
