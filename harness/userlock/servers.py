"""The servers of a lock of one's own: KIND:N."""

from __future__ import annotations

from dataclasses import dataclass

from fencepost.harness.errors import BadArguments
from fencepost.harness.servers.external_names import Foreign
from fencepost.harness.servers.kinds import KINDS, roles


@dataclass(frozen=True)
class Servers:
    """`count` servers of a kind, each on a node of its own."""

    kind: str
    count: int

    def __str__(self) -> str:
        return f"{self.kind}:{self.count}"

    @classmethod
    def stored(cls, text: str) -> Servers:
        """What `str` gave. Servers that are there already may be of any kind, and of any number.

        Raises:
            ValueError: it is nothing that `str` gives.
        """
        kind, _, digits = text.partition(":")
        return cls(kind, int(digits))

    @classmethod
    def beside(cls, foreign: Foreign) -> Servers:
        """Servers that are there already. Of a kind that is in a file nothing else is known."""
        kind = foreign.kind
        return cls(kind.role if kind and kind.name in KINDS else "", len(foreign.servers))

    @classmethod
    def read(cls, text: str) -> Servers:
        """The servers that `redis:1` means; `redis` is one of them.

        Raises:
            BadArguments: there is no such kind, or a cluster has not so many of it.
        """
        kind, colon, digits = text.partition(":")
        if kind not in roles():
            raise BadArguments(
                f"servers {text!r}: there is no server {kind!r}; choose one of: "
                f"{', '.join(roles())}, and write {roles()[0]}:1, say"
            )
        most = KINDS[kind].nodes
        count = int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 4 else 0
        count = count if colon else 1
        if not 1 <= count <= most:
            raise BadArguments(
                f"servers {text!r}: write {kind}:N, with N from 1 to {most}, the most that a "
                "cluster has"
            )
        return cls(kind, count)
