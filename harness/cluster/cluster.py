"""What a run needs of its nodes, wherever they come from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

from fencepost.harness.remote.remote import Program, Remote
from fencepost.harness.servers.external import ForeignServer

Spawn = Callable[[Sequence[str]], Program]
"""Starts a command, with its standard streams connected here."""


class Cluster(Protocol):
    """Nodes by name. Whatever cannot be done raises Crashed, with the reason.

    `versions`: what test.json says about the cluster.
    """

    @property
    def nodes(self) -> list[str]: ...
    @property
    def versions(self) -> dict[str, str]: ...
    @property
    def foreign(self) -> Mapping[str, ForeignServer]:
        """The servers by node that are not ours; empty for a cluster whose servers are."""

    def up(self, nodes: Iterable[str], image: str) -> None:
        """Bring these nodes up, each with its server started. Only containers need `image`."""

    def look(self) -> list[str]:
        """Find the nodes that are up, even those of an earlier command; return their names."""

    def down(self) -> None:
        """Undo `up`, and whatever a run left."""

    def remote(self, node: str) -> Remote: ...

    def in_image(self, node: str, image: str, archive: bytes) -> Spawn:
        """What starts a command in an image of its own, beside a node, with an archive's files."""

    def address(self, node: str) -> str:
        """The address by which the other nodes reach this one."""
