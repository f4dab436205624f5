"""The boundary between a worker and the resource that the lock protects; the guards by name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from fencepost.workloads.locks.lock import Grant


@dataclass(frozen=True)
class Guard:
    """A rule by which writes are accepted. `stores` can keep it, the first one by default.

    `needs` is what a grant has to carry: nothing, "token", "pair" (token and minor), or a
    "sequencer" that the lock service can be asked about. `of` is the kind of servers that it
    works with, where it is not any.
    """

    name: str
    what: str
    stores: tuple[str, ...] = ("redis", "postgres")
    needs: str = ""
    of: str = ""


GUARDS = {
    guard.name: guard
    for guard in (
        Guard("none", "accepts every write: the lock alone protects the data"),
        Guard(
            "deadline",
            "accepts every write; the client looks at its lease and its clock before it sends one "
            "(not enough: the pause may come after the look)",
        ),
        Guard(
            "fenced",
            "accepts a write only if its fencing token is at least the highest that it has seen",
            needs="token",
        ),
        Guard(
            "paired",
            "accepts a write only if its minor token, the lowest grant not yet released, is above "
            "the highest token that it has seen",
            ("redis",),
            needs="pair",
        ),
        Guard(
            "compare-and-set",
            "accepts a write only on top of the version that its writer read; needs no lock",
        ),
        Guard(
            "check-sequencer",
            "asks the lock service with each write whether its hold is still there",
            ("server",),
            needs="sequencer",
            of="etcd",
        ),
        Guard(
            "transaction",
            "one etcd transaction: the write, if the lock's key is still there",
            ("etcd",),
            needs="sequencer",
            of="etcd",
        ),
    )
}


def register(resource: str) -> str:
    """The register that a store keeps a resource in.

    The resource of a test with one lock, `account`, lies in `register`, as docs/protocol.md has
    always had it; any other in a register of its own name.
    """
    return "register" if resource == "account" else resource


class Resource(Protocol):
    """The resources in one store, each by its name.

    Both verbs raise Failed (certainly not) or Indeterminate, as locks do.
    """

    def read(self, resource: str) -> tuple[Any, int]:
        """The value (None before the first write) and its version."""

    def write(self, resource: str, value: Any, version: int, grant: Grant | None) -> int:
        """Store the value; the version that the resource gave it.

        `version` is what the writer read. Failed "refused" where the guard says no.
        """

    def close(self) -> None: ...
