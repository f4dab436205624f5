"""The boundary between a worker and the resource that the lock protects."""

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
        """Store the value, and return the version that the resource gave it.

        `version` is what the writer read. Failed "refused" where the guard says no.
        """

    def close(self) -> None: ...


def register(resource: str) -> str:
    """The register that a store keeps a resource in.

    The resource of a test with one lock, `account`, lies in `register`, as docs/protocol.md has
    always had it; any other in a register of its own name.
    """
    return "register" if resource == "account" else resource
