"""The bundle of a guard: the rule, its needs, and how each store enforces it.

Each guard's file has its bundle, and workloads/resources/registry.py lists the built-in ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
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
class Guard:
    """A rule by which writes are accepted. `stores` can enforce it, the first one by default.

    `lua` and `sql` are the rule itself, for the store in Redis or in PostgreSQL (redis_register.py
    and postgres_register.py define the variables that it may use); `refused` is the reason of a
    refusal by the former. `looks_at_clock`: the client enforces the rule, by its lease and its own
    clock.
    """

    name: str
    what: str
    stores: tuple[str, ...] = ("redis", "postgres")
    needs: Need = NOTHING
    lua: str = ""
    sql: LiteralString = "true"
    refused: str = ""
    looks_at_clock: bool = False

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

    Locks that are broken on purpose are left out.
    """
    found = []
    for lock in locks:
        if lock.name.startswith("broken"):
            continue
        if guard.serves(lock, {}):
            found.append(lock.name)
        else:
            tokens = [token for token in lock.tokens() if guard.serves(lock, {"token": token})]
            found += [f"{lock.name} -o token={token}" for token in tokens]
    return found
