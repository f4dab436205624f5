"""What a run needs of its nodes, wherever they come from."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from fencepost.harness.remote.remote import Remote


class Cluster(Protocol):
    """Nodes by name. Crashed where something cannot be done, with the reason.

    `versions`: what is worth knowing of it in test.json.
    """

    @property
    def nodes(self) -> list[str]: ...
    @property
    def versions(self) -> dict[str, str]: ...

    def up(self, nodes: Iterable[str], image: str) -> None:
        """These nodes, reachable, each with its server started; `image` is for containers."""

    def look(self) -> list[str]:
        """Find the nodes that are up, also those of an earlier command; their names."""

    def down(self) -> None:
        """Undo `up`, and all that a run may have left."""

    def remote(self, node: str) -> Remote: ...

    def address(self, node: str) -> str:
        """Where the other nodes find this one."""
