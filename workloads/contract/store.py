"""The bundle of a store: where a resource is kept, and how a client opens it.

Each store's file ends with its bundle, and registry.py lists the built-in ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from fencepost.workloads.contract.guard import Guard, Rule
from fencepost.workloads.contract.lock import Env
from fencepost.workloads.contract.resource import Resource


@dataclass(frozen=True)
class Opening:
    """The arguments for opening a store: its node, the lock's servers, the guard, and the rule by
    which this store enforces the guard.

    `timeout_s` is the timeout of one request.
    """

    env: Env
    storage: str
    servers: Sequence[str]
    guard: Guard
    timeout_s: float
    rule: Rule


@dataclass(frozen=True)
class Store:
    """A store by name. `kind` is the kind of server that runs on the storage node.

    It enforces every guard that has a rule in its `language`, and the guards that `rules` names.
    `beside`: the lock's own servers keep it, which must be of this kind (LockType.server, or else
    LockType.kind). `server` is the module of a program that runs in front of that server and knows
    the lock's servers, if there is one.

    Raises ValueError for an invalid field.
    """

    name: str
    what: str
    open: Callable[[Opening], Resource]
    kind: str = "redis"
    server: str = ""
    beside: str = ""
    language: str = ""
    rules: Mapping[str, Rule] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not (self.name and self.what):
            raise ValueError(f"store {self.name!r}: give it a name, and say what it is")
        if not (self.language or self.rules):
            raise ValueError(f"store {self.name}: give it a language of rules, or rules of guards")

    def rule(self, guard: Guard) -> Rule | None:
        """Return how this store enforces the guard; None if it cannot."""
        return self.rules.get(guard.name) or guard.rules.get(self.language)
