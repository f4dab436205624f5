"""What a run needs of its nodes, wherever they come from."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from fencepost.harness.remote.remote import Remote


class Cluster(Protocol):
    """Nodes by name. Whatever cannot be done raises Crashed, with the reason.

    `versions`: what test.json says about the cluster.
    """

    @property
    def nodes(self) -> list[str]: ...
    @property
    def versions(self) -> dict[str, str]: ...

    def up(self, nodes: Iterable[str], image: str) -> None:
        """Bring these nodes up, each with its server started. Only containers need `image`."""

    def look(self) -> list[str]:
        """Find the nodes that are up, even those of an earlier command; return their names."""

    def down(self) -> None:
        """Undo `up`, and whatever a run left."""

    def remote(self, node: str) -> Remote: ...

    def address(self, node: str) -> str:
        """The address by which the other nodes reach this one."""
