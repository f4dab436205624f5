"""The boundary between a worker and the resource that the lock protects."""

from __future__ import annotations

from typing import Any, Protocol

from workloads.locks.lock import Grant

GUARDS = {
    "none": "accepts every write: the lock alone protects the data",
    "fenced": "accepts a write only if its fencing token is at least the highest that it has seen",
}
"""Guards by name; `fenced` needs a lock whose grants carry tokens."""


class Resource(Protocol):
    """Both raise Failed (certainly not) or Indeterminate, as locks do."""

    def read(self) -> tuple[Any, int]:
        """The value (None before the first write) and its version."""

    def write(self, value: Any, version: int, grant: Grant | None) -> int:
        """Store the value; the version that the resource gave it.

        `version` is what the writer read. Failed "refused" where the guard says no.
        """

    def close(self) -> None: ...
