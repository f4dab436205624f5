"""Parses the servers of a user lock: KIND:N."""

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
        """Parse the result of `str`. External servers may be of any kind and any number.

        Raises:
            ValueError: the text is not KIND:N.
        """
        kind, _, digits = text.partition(":")
        return cls(kind, int(digits))

    @classmethod
    def beside(cls, foreign: Foreign) -> Servers:
        """Return the description of external servers; a kind that is defined in a file is ''."""
        kind = foreign.kind
        return cls(kind.role if kind and kind.name in KINDS else "", len(foreign.servers))

    @classmethod
    def read(cls, text: str) -> Servers:
        """Parse KIND:N from a command line; `redis` means `redis:1`.

        Raises:
            BadArguments: there is no such kind, or N is more than a cluster can have.
        """
        kind, colon, digits = text.partition(":")
        if kind not in roles():
            raise BadArguments(
                f"servers {text!r}: there is no server {kind!r}; choose one of: "
                f"{', '.join(roles())} (for example: {roles()[0]}:1)"
            )
        most = KINDS[kind].nodes
        count = int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 4 else 0
        count = count if colon else 1
        if not 1 <= count <= most:
            raise BadArguments(
                f"servers {text!r}: write {kind}:N, with N from 1 to {most}, the maximum of a "
                "cluster"
            )
        return cls(kind, count)
