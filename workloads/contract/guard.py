"""The bundle of a guard: what it accepts, its needs, and its rule in the languages of stores.

Each guard's file has its bundle, and workloads/resources/registry.py lists the built-in ones. A
store can enforce a guard that has a rule in the store's language, and one for which the store has
its own rule (workloads/contract/store.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, LiteralString

from fencepost.workloads.contract.lock import Failed, Grant
from fencepost.workloads.contract.locktype import LockType


@dataclass(frozen=True)
class Need:
    """What a grant has to carry, in words (`what`), and which locks provide it (`given_by`).

    `by_lock` returns whether a lock with these options provides it, `by_grant` whether a grant has
    it.
    """

    what: str
    given_by: str
    by_lock: Callable[[LockType, Mapping[str, Any]], bool]
    by_grant: Callable[[Grant], bool]


NOTHING = Need("nothing", "any lock", lambda lock, options: True, lambda grant: True)
TOKEN = Need(
    "a fencing token",
    "a lock with tokens",
    lambda lock, options: bool(lock.has_token(options)),
    lambda grant: grant.token is not None,
)
PAIR = Need(
    "a pair of tokens",
    "a lock with paired tokens (redis -o token=paired)",
    lambda lock, options: lock.token(options) == "paired",
    lambda grant: grant.token is not None and grant.minor is not None,
)
SEQUENCER = Need(
    "a hold that the lock service can be asked about",
    "a lock whose service can be asked (etcd, chubby)",
    lambda lock, options: lock.sequencer,
    lambda grant: grant.sequencer is not None,
)


@dataclass(frozen=True)
class Rule:
    """A guard's rule in the language of a store: "lua" or "sql" (redis_register.py and
    postgres_register.py define the variables that it may use). `refused` is the reason of a
    refusal.
    """

    text: LiteralString = ""
    refused: str = ""


ACCEPT: Mapping[str, Rule] = {"lua": Rule(), "sql": Rule("true")}
"""The rules of a guard with which a store accepts every write."""


@dataclass(frozen=True)
class Guard:
    """A rule by which writes are accepted. `rules` has it in each language of stores.

    `looks_at_clock`: the client enforces the rule, by its lease and its own clock. `lockless`: the
    guard protects the data without a lock, so that a stale write is no damage. `lower_only`: it
    refuses no write but one with a lower token than it has seen.

    Raises ValueError for an invalid field.
    """

    name: str
    what: str
    rules: Mapping[str, Rule] = field(default_factory=dict)
    needs: Need = NOTHING
    looks_at_clock: bool = False
    lockless: bool = False
    lower_only: bool = False

    def __post_init__(self) -> None:
        if not (self.name and self.what):
            raise ValueError(f"guard {self.name!r}: give it a name, and say what it does")
        if odd := [name for name, rule in self.rules.items() if not isinstance(rule, Rule)]:
            raise ValueError(f"guard {self.name}: its rule in {odd[0]} is no Rule")

    def serves(self, lock: LockType, options: Mapping[str, Any]) -> bool:
        """Return whether the grants of a lock with these options carry what the guard needs."""
        return self.needs.by_lock(lock, options)

    def require(self, grant: Grant | None) -> None:
        """Raise Failed "refused" if the grant does not carry what the guard needs."""
        if self.needs is not NOTHING and (grant is None or not self.needs.by_grant(grant)):
            raise Failed(
                "refused", f"guard {self.name} needs {self.needs.what}, but the grant has none"
            )


def served(guard: Guard, locks: Iterable[LockType]) -> list[str]:
    """Return the locks that the guard works with, as options of the command line.

    Locks that are not sound are left out.
    """
    found = []
    for lock in locks:
        if not lock.sound:
            continue
        if guard.serves(lock, {}):
            found.append(lock.name)
        else:
            tokens = [token for token in lock.tokens() if guard.serves(lock, {"token": token})]
            found += [f"{lock.name} -o token={token}" for token in tokens]
    return found
