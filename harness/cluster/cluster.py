"""What a test needs of a cluster, wherever its nodes are."""

from __future__ import annotations

from typing import Protocol

from harness.remote.remote import Remote


class Cluster(Protocol):
    @property
    def nodes(self) -> list[str]:
        """The nodes that are up."""

    @property
    def versions(self) -> dict[str, str]:
        """What the nodes are made of, for test.json."""

    def remote(self, node: str) -> Remote: ...
    def address(self, node: str) -> str:
        """The address by which the other nodes reach this one."""
