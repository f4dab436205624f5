"""The interface between a worker and the resource that the lock protects."""

from __future__ import annotations

from typing import Any, Protocol

from fencepost.workloads.contract.lock import Grant


class Resource(Protocol):
    """The resources in one store, each by its name.

    Both verbs raise Failed (certainly not) or Indeterminate, as locks do.
    """

    def read(self, resource: str) -> tuple[Any, int]:
        """Return the value (None before the first write) and its version."""

    def write(self, resource: str, value: Any, version: int, grant: Grant | None) -> int:
        """Store the value, and return the version that the resource assigned to it.

        `version` is the one that the writer read. Failed "refused" if the guard refuses.
        """

    def close(self) -> None: ...


def register(resource: str) -> str:
    """Return the register in which a store keeps a resource.

    The resource of a test with one lock, `account`, is in `register`, as docs/protocol.md defines;
    any other has a register with its name.
    """
    return "register" if resource == "account" else resource
