"""`fencepost locks` and `fencepost guards`: lists the locks and guards of the registries."""

from __future__ import annotations

from typing import Annotated

import typer

from fencepost.harness.command import screen
from fencepost.harness.errors import BadArguments, choose
from fencepost.workloads.contract.locktype import LockType
from fencepost.workloads.contract.option import Option
from fencepost.workloads.locks.registry import LOCKS
from fencepost.workloads.resources.registry import GUARDS, keepers


def locks(name: Annotated[str, typer.Argument(help="Show the options of this lock.")] = "") -> None:
    if name:
        _one_lock(LOCKS[choose("lock", name, LOCKS)])
    else:
        _all_locks()


def _all_locks() -> None:
    table = screen.table("lock", "servers", "tokens", "promises", "what it is", whole=2)
    for lock in LOCKS.values():
        tokens = ", ".join(lock.tokens()) or "none"
        servers = f"{lock.kind} x{lock.servers}"
        table.add_row(lock.name, servers, tokens, ", ".join(lock.promised()), lock.what)
    screen.console().print(table)


def _one_lock(lock: LockType) -> None:
    """Print a lock, its promises, and each option with its default and its meaning."""
    screen.write(f"{lock.name}: {lock.what}")
    instead = f" (as {lock.server})" if lock.server else ""
    screen.write(f"servers: {lock.kind} x{lock.servers}{instead}")
    screen.write(f"promises: {', '.join(lock.promised()) or 'only exclusion'}")
    if not lock.options:
        screen.write("options: none")
        return
    table = screen.table("option", "default", "values", "meaning", whole=2)
    for name, option in lock.options.items():
        table.add_row(f"-o {name}=", _shown(option.default), _values(option), option.what)
    screen.console().print(table)


def _values(option: Option) -> str:
    if option.choices:
        return ", ".join(_shown(choice) for choice in option.choices)
    return f"an integer, at least {option.least}"


def _shown(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def guards() -> None:
    table = screen.table("guard", "needs", "stores", "what it does", whole=1)
    for guard in GUARDS.values():
        table.add_row(guard.name, guard.needs.given_by, ", ".join(keepers(guard)), guard.what)
    screen.console().print(table)


def lincheck() -> None:
    """Declare the command for the help; `fencepost.harness.__main__` runs the checker itself."""
    raise BadArguments("lincheck takes no options before it: `fencepost lincheck FILE --model M`")
