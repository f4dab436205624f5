"""Defines the interface of a cluster of nodes: containers, external servers, or hosts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

from fencepost.harness.remote.remote import Program, Remote
from fencepost.harness.servers.external import ForeignServer

Spawn = Callable[[Sequence[str]], Program]
"""Starts a command, with its standard streams as pipes."""


class Cluster(Protocol):
    """Nodes by name. A method that fails raises Crashed with the reason.

    `versions`: the description of the cluster in run.json.
    """

    @property
    def nodes(self) -> list[str]: ...
    @property
    def versions(self) -> dict[str, str]: ...
    @property
    def foreign(self) -> Mapping[str, ForeignServer]:
        """The external servers by node; empty if the cluster has its own servers."""

    def up(self, nodes: Iterable[str], image: str) -> None:
        """Start these nodes, each with its server. Only containers need `image`."""

    def look(self) -> list[str]:
        """Find the running nodes, also those of an earlier command; return their names."""

    def down(self) -> None:
        """Undo `up`, and remove everything that a run left."""

    def remote(self, node: str) -> Remote: ...

    def in_image(self, node: str, image: str, archive: bytes) -> Spawn:
        """Return a function that starts a command in an image next to a node, with these files."""

    def address(self, node: str) -> str:
        """Return the address by which the other nodes reach this one."""
