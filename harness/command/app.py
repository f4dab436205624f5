"""The command line: every command by name, of which only the one that is called is imported.

So `fencepost --help` loads no Docker, no SSH and no table library. A line of COMMANDS is a
command: the module that has it, and its line in the help.
"""

from __future__ import annotations

import os
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
    examples: tuple[str, ...] = ()

    def epilog(self, action: str = "") -> str | None:
        """The examples, below its help; of a group's command, those of that one."""
        of = f"fencepost {self.name} {action}".strip()
        found = [one for one in self.examples if f"{one} ".startswith(f"{of} ")]
        return "\n\n".join(("Examples:", *found)) if found else None


COMMANDS = (
    Command(
        "init",
        "init:init",
        "Begin a project: a lock of your own, its fencepost.toml, a test and a workflow.",
        examples=("fencepost init", "fencepost init my-project"),
    ),
    Command(
        "doctor",
        "doctor:doctor",
        "Say what this machine lacks for a run, and what to do.",
        examples=("fencepost doctor",),
    ),
    Command(
        "test",
        "test:test",
        "Test a lock: clients write under it, faults strike; then judge.",
        examples=(
            "fencepost test redlock --faults partition,pause,clock --time 60 --seed 7",
            "fencepost test mylock.py:MyLock --servers redis:1 --faults pause --fail-on service",
            "fencepost test --replay redlock/latest",
        ),
    ),
    Command(
        "hunt",
        "hunt:hunt",
        "Search simulated runs for a schedule that breaks a lock; no Docker.",
        examples=(
            "fencepost hunt redlock --budget 20",
            "fencepost hunt redlock --faults clock,partition --seed 13",
            "fencepost hunt redlock --faults clock,partition --confirm",
        ),
    ),
    Command(
        "check",
        "check:check",
        "Check whether a lock of your own keeps the contract, step by step.",
        examples=(
            "fencepost check mylock.py:MyLock --servers redis:1",
            "fencepost check --program ./worker --ship build --servers redis:1",
            "fencepost check mylock.py:MyLock --containers redis=my-redis",
        ),
    ),
    Command(
        "suite",
        "suite:suite",
        "Run scenarios, each against its published outcome.",
        examples=("fencepost suite redlock", "fencepost suite redlock --only clock-jump"),
    ),
    Command(
        "matrix",
        "matrix:matrix",
        "Test every lock under every fault, and show what came of it in one table.",
        examples=(
            "fencepost matrix --quick",
            "fencepost matrix --locks redis,etcd --faults none,pause:client,kill --budget 20m",
            "fencepost matrix --resume latest --budget 20m",
        ),
    ),
    Command(
        "sweep",
        "sweep:sweep",
        "Show where safety ends: a lock over a grid of a setting and a fault.",
        examples=(
            "fencepost sweep redlock --x ttl=0.5s..10s --y pause=0.5s..20s",
            "fencepost sweep redlock --x ttl=1s..8s --y restart-delay=0.1s..8s --steps 4x4",
            "fencepost sweep --resume latest --budget 20m",
        ),
    ),
    Command(
        "track-record",
        "track_record:track_record",
        "Show every defect that was found in software which people use once more.",
        examples=(
            "fencepost track-record",
            "fencepost track-record --only redis-py --simulated",
        ),
    ),
    Command(
        "nightly",
        "nightly",
        "Run everything within a budget, and say which outcomes changed.",
        examples=(
            "fencepost nightly run --budget 8h",
            "fencepost nightly baseline latest",
            "fencepost nightly report-issue latest",
            "fencepost nightly report latest",
            "fencepost nightly trend trend.html",
        ),
    ),
    Command(
        "site",
        "site:site",
        "Write the results folder as a static site.",
        examples=("fencepost site public",),
    ),
    Command(
        "bench",
        "bench:bench",
        "Measure what locks cost, without faults, against one Redis.",
        examples=("fencepost bench redlock zookeeper --time 5",),
    ),
    Command(
        "locks",
        "lists:locks",
        "List the locks, or show one with its options.",
        examples=("fencepost locks", "fencepost locks redlock"),
    ),
    Command(
        "guards",
        "lists:guards",
        "List every guard by which a resource accepts writes.",
        examples=("fencepost guards",),
    ),
    Command(
        "sdk",
        "sdk:sdk",
        "Write the file by which a client in another language is tested.",
        examples=("fencepost sdk go", "fencepost sdk java --to src"),
    ),
    Command(
        "analyze",
        "analyze:analyze",
        "Judge a stored history again, also a killed run's.",
        examples=("fencepost analyze redlock/latest --fail-on service",),
    ),
    Command(
        "explain",
        "analyze:explain",
        "Say what came out of a run, without a browser.",
        examples=("fencepost explain", "fencepost explain redlock/latest"),
    ),
    Command(
        "ls",
        "store:ls",
        "List the runs in the results folder.",
        examples=("fencepost ls", "fencepost ls redlock --verdict invalid --json"),
    ),
    Command(
        "show",
        "store:show",
        "Show how a run was set up, its verdicts and its files.",
        examples=("fencepost show", "fencepost show redlock/latest --json"),
    ),
    Command(
        "compare",
        "store:compare",
        "Show two runs side by side; exit code 1 if a verdict differs.",
        examples=("fencepost compare redlock/20261122T010203.000001Z redlock/latest",),
    ),
    Command(
        "rm",
        "store:rm",
        "Remove runs from the results folder.",
        examples=("fencepost rm redlock/latest", "fencepost rm --older 168h --yes"),
    ),
    Command(
        "serve",
        "serve:serve",
        "Show the results folder in a browser: runs listed, compared, watched.",
        examples=("fencepost serve", "fencepost serve --port 8090 --results nightly"),
    ),
    Command(
        "report",
        "analyze:report",
        "Write a run's report.html again; alone, list the runs.",
        examples=("fencepost report", "fencepost report redlock/latest"),
    ),
    Command(
        "heal",
        "heal:heal",
        "Undo and remove whatever a killed run left behind.",
        examples=("fencepost heal", "fencepost heal --check", "fencepost heal --hosts hosts.toml"),
    ),
    Command(
        "lincheck",
        "lists:lincheck",
        "Check histories for linearizability (see `lincheck --help`).",
        takes_all=True,
        examples=("fencepost lincheck history.jsonl --model register",),
    ),
    Command("nemesis", "nemesis", "List the faults.", examples=("fencepost nemesis list",)),
    Command(
        "cluster",
        "cluster",
        "Bring the cluster of containers up and down, apart from tests.",
        examples=(
            "fencepost cluster up",
            "fencepost cluster up redis client",
            "fencepost cluster status",
            "fencepost cluster down",
            "fencepost cluster build",
        ),
    ),
)


def app(called: str) -> typer.Typer:
    """The command line: the called command with its options, all others by name only."""
    made = _typer(
        "Tests distributed locks: real servers, real faults, a verdict from the history.", True
    )
    made.callback()(_main)
    for command in COMMANDS:
        module, _, function = command.home.partition(":")
        found = _load(module) if command.name == called else None
        if function:
            settings = {"allow_extra_args": True, "ignore_unknown_options": True}
            made.command(
                command.name,
                help=command.what,
                epilog=command.epilog(),
                context_settings=settings if command.takes_all else None,
            )(getattr(found, function) if found else _not_called)
        else:
            group = _typer(command.what, epilog=command.epilog())
            for name, action in (found.COMMANDS if found else {"": _not_called}).items():
                group.command(name, epilog=command.epilog(name))(action)
            made.add_typer(group, name=command.name)
    return made


def _typer(what: str, top: bool = False, epilog: str | None = None) -> typer.Typer:
    return typer.Typer(
        help=what,
        epilog=epilog,
        no_args_is_help=True,
        add_completion=top,
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
    # The shell that asks how a line goes on tells the line in its environment.
    words = sys.argv[1:] or os.environ.get("COMP_WORDS", "").split()[1:]
    try:
        made = app(words[0] if words else "")
        code = made(standalone_mode=False, default_map=_defaults(words, made))
    except (KeyboardInterrupt, typer.Abort):
        return _interrupted()
    except typer.Exit as error:
        return error.exit_code
    except Exception as error:
        return _failed(error)
    if code == INTERRUPTED:  # what typer makes of an interrupt
        return _interrupted()
    return code if isinstance(code, int) else 0


def _defaults(words: list[str], made: typer.Typer) -> dict[str, Any]:
    """What a fencepost.toml in this folder says of the command that is called."""
    from fencepost.harness.command import project

    if not project.read_by(words):
        return {}
    all_of_test = typer.main.get_command(made if words[0] == "test" else app("test"))
    return project.defaults(words, typer.main.get_command(made), all_of_test)


def _interrupted() -> int:
    return _say("interrupted; what it had started is removed", INTERRUPTED)


_POSIX = frozenset(("fcntl", "pwd", "resource", "termios"))
"""Modules of Python that Windows does not have."""


def _failed(error: Exception) -> int:
    """Print what went wrong, and return the exit code, which is never that of a verdict."""
    # What raises them has imported these already.
    from fencepost.checker.history.history import HistoryError
    from fencepost.harness.remote.remote import RemoteError
    from fencepost.registry import BadPlugin
    from fencepost.report.stored import ReportError

    match error:
        case BadArguments() | BadPlugin() | HistoryError() | ReportError():
            return _say(error, BAD_ARGUMENTS)
        case Crashed() | RemoteError():
            return _say(error, CRASHED)
        case ModuleNotFoundError(name=name) if name in _POSIX:
            return _say(
                f"this needs a POSIX system, Linux or macOS: Python has no {name} here. "
                "`fencepost hunt` without --confirm runs everywhere",
                CRASHED,
            )
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
