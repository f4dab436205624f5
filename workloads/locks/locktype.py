"""How a lock is described: what it needs, promises and lets one choose."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from fencepost.workloads.locks.lock import Env, Lock

Make = Callable[[Env, Sequence[str], Mapping[str, Any]], Lock]

ENDS_WITH = ("lease", "close", "connection")
"""How a grant may end although its lease still runs: see `LockType`."""


@dataclass(frozen=True)
class Option:
    """One option of a lock: its default, and the values or the least number that make sense."""

    default: Any
    choices: tuple[Any, ...] = ()
    least: int = 0
    what: str = ""

    def read(self, name: str, text: str) -> Any:
        """The value that `text` means.

        Raises:
            ValueError: naming what would be valid.
        """
        if self.choices:
            for choice in self.choices:
                if text.lower() == str(choice).lower():
                    return choice
            valid = ", ".join(str(choice).lower() for choice in self.choices)
            raise ValueError(f"option {name}={text}: choose one of {valid}")
        try:
            number = int(text)
        except ValueError:
            number = self.least - 1
        if number < self.least:
            raise ValueError(f"option {name}={text}: a whole number from {self.least} on")
        return number


@dataclass(frozen=True)
class LockType:
    """A lock by name. `servers` is how many nodes of `kind` it runs on.

    `make` is "module:Class", imported by the worker alone: a library's client is not needed
    where its lock is only described. `library` names the virtual environment on the node that
    the worker then runs in, and `program` the command of a worker that is not fencepost's own.
    `promises`: `minority` (usable while a minority is down), `fifo` (grants in order of asking),
    `one_wakeup` (a release wakes one waiter). `least_ttl_ms` is the shortest lease or session
    that the servers give. `extends` and `shared` say which verbs it has beside acquire and
    release; `sequencer`, that the lock service can be asked about a hold; `replicated`, that the
    servers but the first are replicas of the first.

    `ends_with` says what ends a grant: `lease`, a release that reached the service, or time;
    `close`, also its client's `close`, which ends the session that the grant lives by;
    `connection`, also the loss of its client, killed or cut off for good.
    """

    name: str
    what: str
    make: str
    servers: int
    kind: str = "redis"
    options: Mapping[str, Option] = field(default_factory=dict)
    promises: Mapping[str, bool] = field(default_factory=dict)
    library: str = ""
    program: tuple[str, ...] = ()
    least_ttl_ms: int = 100
    whole_seconds: bool = False
    extends: bool = True
    shared: bool = False
    sequencer: bool = False
    replicated: bool = False
    ends_with: str = "lease"

    def __post_init__(self) -> None:
        if self.ends_with not in ENDS_WITH:
            valid = ", ".join(ENDS_WITH)
            raise ValueError(f"lock {self.name}: ends_with {self.ends_with!r} is none of {valid}")

    def token(self, options: Mapping[str, Any]) -> str:
        """Where its tokens come from; "none" where there are none."""
        return str(options.get("token", "none"))

    def has_token(self, options: Mapping[str, Any]) -> bool:
        return self.token(options) != "none"

    def tokens(self) -> list[str]:
        """The settings that give tokens."""
        choices = self.options["token"].choices if "token" in self.options else ()
        return [str(choice) for choice in choices if choice != "none"]

    def read_options(self, given: Mapping[str, str]) -> dict[str, Any]:
        """Every option with its value, from text.

        Raises:
            ValueError: an option that the lock does not have, or a value that makes no sense.
        """
        unknown = sorted(set(given) - set(self.options))
        if unknown:
            valid = ", ".join(sorted(self.options)) or "none"
            raise ValueError(f"lock {self.name} has no option {unknown[0]}; it has {valid}")
        return {
            name: option.read(name, given[name]) if name in given else option.default
            for name, option in self.options.items()
        }


def load(lock: LockType) -> Make:
    """The class of a lock; imports what it needs."""
    module, _, name = lock.make.partition(":")
    make: Make = getattr(import_module(module), name)
    return make
