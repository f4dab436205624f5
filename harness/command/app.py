"""Defines the command line: every command by name; only the called command is imported.

So `fencepost --help` loads neither Docker, SSH nor a table library.
"""

from __future__ import annotations

import os
import re
import sys
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Annotated, Any

import typer

from fencepost import output
from fencepost.harness import old_names
from fencepost.harness.command.exits import BAD_ARGUMENTS, CRASHED, INTERRUPTED
from fencepost.harness.errors import BadArguments, Crashed
from fencepost.harness.interrupts import interrupt_on_signals


@dataclass(frozen=True)
class Command:
    """A command. `home`: "module:function" in this folder, or a module with a group of commands."""

    home: str
    what: str
    examples: tuple[str, ...]

    @property
    def name(self) -> str:
        return self.home.rpartition(":")[2].replace("_", "-")

    @property
    def takes_all(self) -> bool:
        """Whether it parses its own options."""
        return self.name == "lincheck"

    def epilog(self, action: str = "") -> str | None:
        """Return the examples below the help; for `action` of a group, only its examples."""
        of = f"fencepost {self.name} {action}".strip()
        found = [one for one in self.examples if f"{one} ".startswith(f"{of} ")]
        return "\n\n".join(("Examples:", *found)) if found else None


# The home of each command, its line in the help, and its examples.
_TABLE = """\
init:init Create a project: an example lock, its fencepost.toml, a test and a workflow.
    fencepost init
    fencepost init my-project
doctor:doctor Check whether this machine can run tests, and how to fix problems.
    fencepost doctor
test:test Test a lock: run clients, inject faults, judge the history.
    fencepost test redlock --faults partition,pause,clock --time 60 --seed 7
    fencepost test mylock.py:MyLock --servers redis:1 --faults pause --fail-on service
    fencepost test --replay redlock/latest
hunt:hunt Search simulated runs for a schedule that breaks a lock (no Docker).
    fencepost hunt redlock --budget 20
    fencepost hunt redlock --faults clock,partition --seed 13
    fencepost hunt redlock --faults clock,partition --confirm
check:check Check step by step whether a user lock keeps the contract.
    fencepost check mylock.py:MyLock --servers redis:1
    fencepost check --program ./worker --ship build --servers redis:1
    fencepost check mylock.py:MyLock --containers redis=my-redis
suite:suite Run scenarios and compare each with its published outcome.
    fencepost suite redlock
    fencepost suite redlock --only clock-jump
matrix:matrix Run every lock under every fault and print the results as one table.
    fencepost matrix --quick
    fencepost matrix --locks redis,etcd --faults none,pause:client,kill --budget 20m
    fencepost matrix --resume latest --budget 20m
sweep:sweep Find where safety ends: test a lock over a grid of two settings.
    fencepost sweep redlock --x ttl=0.5s..10s --y pause=0.5s..20s
    fencepost sweep redlock --x ttl=1s..8s --y restart-delay=0.1s..8s --steps 4x4
    fencepost sweep --resume latest --budget 20m
track_record:track_record Reproduce every known defect in third-party lock libraries.
    fencepost track-record
    fencepost track-record --only redis-py --simulated
    fencepost track-record --versions redis-py=5..8
register:register List defects that scripts show, and those that concern your project.
    fencepost register
    fencepost register --check requirements.txt
reproduce:reproduce Write a script that shows a row of the register without fencepost.
    fencepost reproduce redis-py-cancelled-acquire
defects:defects List the catalogue of lock defects, or play it: which of them are found?
    fencepost defects
    fencepost defects --play --by history,hunt
    fencepost defects --play release-without-owner-check --seeds 1
nightly Run everything within a time budget and report changed outcomes.
    fencepost nightly run --budget 8h
    fencepost nightly baseline latest
    fencepost nightly report-issue latest
    fencepost nightly report latest
    fencepost nightly trend trend.html
site:site Write the results folder as a static site.
    fencepost site public
bench:bench Measure the cost of locks without faults, relative to one Redis.
    fencepost bench redlock zookeeper --time 5
lists:locks List the locks, or show one with its options.
    fencepost locks
    fencepost locks redlock
lists:guards List the guards by which a resource accepts writes.
    fencepost guards
sdk:sdk Write the client SDK for another language.
    fencepost sdk go
    fencepost sdk java --to src
analyze:analyze Judge a stored history again, also that of a killed run.
    fencepost analyze redlock/latest --fail-on service
analyze:explain Print the verdict of a run with its evidence.
    fencepost explain
    fencepost explain redlock/latest
store:ls List the runs in the results folder.
    fencepost ls
    fencepost ls redlock --verdict invalid --json
store:show Show the settings, the verdicts and the files of a run.
    fencepost show
    fencepost show redlock/latest --json
store:compare Compare two runs side by side; exit with 1 if a verdict differs.
    fencepost compare redlock/20261122T010203.000001Z redlock/latest
store:rm Remove runs from the results folder.
    fencepost rm redlock/latest
    fencepost rm --older 168h --yes
serve:serve Serve the results folder to a browser: list, compare and watch runs.
    fencepost serve
    fencepost serve --port 8090 --results nightly
analyze:report Write the report.html of a run again; without RUN, list the runs.
    fencepost report
    fencepost report redlock/latest
heal:heal Undo and remove everything that a killed run left.
    fencepost heal
    fencepost heal --check
    fencepost heal --hosts hosts.toml
lists:lincheck Check histories for linearizability (see `lincheck --help`).
    fencepost lincheck history.jsonl --model register
nemesis List the faults.
    fencepost nemesis list
cluster Start and stop a cluster of containers independently of tests.
    fencepost cluster up
    fencepost cluster up redis client
    fencepost cluster status
    fencepost cluster down
    fencepost cluster build
"""


def _commands() -> Iterator[Command]:
    for entry in re.split(r"\n(?=\S)", _TABLE.rstrip()):
        first, *examples = entry.split("\n    ")
        home, what = first.split(" ", 1)
        yield Command(home, what, tuple(examples))


COMMANDS = tuple(_commands())


def app(called: str) -> typer.Typer:
    """Return the command line: the called command with its options, others by name only."""
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
    """Stands for a command that the help lists but that is not called."""


def _main(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", is_eager=True)
    ] = False,
) -> None:
    """Declare `--version` for the help; harness/__main__.py handles it."""


def run() -> int:
    """Run the command line; return the exit code."""
    interrupt_on_signals()
    sys.argv[1:] = old_names.words(sys.argv[1:])
    # For completion, the shell passes the incomplete line in the environment.
    words = sys.argv[1:] or os.environ.get("COMP_WORDS", "").split()[1:]
    try:
        made = app(words[0] if words else "")
        # Click would take the name from the main module, which `python -m pytest` replaces.
        code = made(
            prog_name="fencepost", standalone_mode=False, default_map=_defaults(words, made)
        )
    except (KeyboardInterrupt, typer.Abort):
        return _interrupted()
    except typer.Exit as error:
        return error.exit_code
    except Exception as error:
        return _failed(error)
    if code == INTERRUPTED:  # typer's code for an interrupt
        return _interrupted()
    return code if isinstance(code, int) else _without_verdict()


def _without_verdict() -> int:
    """Return the exit code of a command that only prints: 0 if it could."""
    sys.stdout.flush()
    why = output.lost()
    return _say(f"the output cannot be written: {why}", CRASHED) if why else 0


def _defaults(words: list[str], made: typer.Typer) -> dict[str, Any]:
    """Return the defaults of the called command from fencepost.toml in the current folder."""
    from fencepost.harness.command import project

    if not project.read_by(words):
        return {}
    all_of_test = typer.main.get_command(made if words[0] == "test" else app("test"))
    return project.defaults(words, typer.main.get_command(made), all_of_test)


def _interrupted() -> int:
    return _say("interrupted; everything that it had started was removed", INTERRUPTED)


_POSIX = frozenset(("fcntl", "pwd", "resource", "termios"))
"""Modules of Python that Windows does not have."""


def _failed(error: Exception) -> int:
    """Print the error; return the exit code, which is never that of a verdict."""
    # The code that raises these errors has imported these modules already.
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
                f"this command needs Linux or macOS (Python has no module {name} here). "
                "`fencepost hunt` without --confirm runs on every system",
                CRASHED,
            )
        case OSError():
            where = error.filename or "a file of the run"
            return _say(f"{where}: {error.strerror or error}", CRASHED)
    # click's usage errors: click would exit with 2, which means "unknown" here.
    usage: Callable[[], str] | None = getattr(error, "format_message", None)
    if usage is not None:
        if type(error).__name__ == "NoArgsIsHelpError":
            print(usage())
            return BAD_ARGUMENTS
        return _say(usage(), BAD_ARGUMENTS)
    # Python would exit with 1, which means "invalid" here.
    traceback.print_exception(error)
    return _say("crashed: this is a defect of fencepost; please report it", CRASHED)


def _say(error: object, code: int) -> int:
    print(f"fencepost: {error}", file=sys.stderr)
    return code
