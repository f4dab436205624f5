"""Parses the names of external servers (`--containers` and `--compose`).

    r1,r2                  two servers of the lock's own kind
    redis=r1,r2            of this kind
    ./mydb.py=db1:7000     of the kind in a file, on this port

A name is that of a container, or with a Compose file that of a service. It is also the name of the
node in the test.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from fencepost.harness.errors import BadArguments
from fencepost.harness.servers.kindfile import load
from fencepost.harness.servers.kinds import KINDS
from fencepost.nemesis.shapes import SHAPES
from fencepost.nemesis.targets import PRIMARY, SERVERS, STORAGE
from fencepost.node.kind import Kind

_ENTRY = re.compile(r"((?P<kind>[^=]+)=)?(?P<name>[A-Za-z0-9][\w.-]*)(:(?P<port>\d+))?")
# Words that denote several nodes, or fencepost's own nodes.
_TAKEN = {*SHAPES, *SERVERS, PRIMARY, STORAGE, "server", "client", "clients", "rolling"}


@dataclass(frozen=True)
class Named:
    """One server of the option. `kind` None: fencepost does not know its kind.

    `port` None: the port of its kind, or else the only one that its image exposes.
    """

    node: str
    kind: Kind | None
    port: int | None = None


@dataclass(frozen=True)
class Foreign:
    """The external servers of a test. `compose`: they are services of this file."""

    servers: tuple[Named, ...]
    compose: Path | None = None

    @property
    def kind(self) -> Kind | None:
        """The kind of the servers; all have the same."""
        return self.servers[0].kind


@cache
def read(entries: tuple[str, ...], kind: str, compose: str = "") -> Foreign:
    """Parse the named servers; `kind` is the default kind.

    Raises:
        BadArguments: a name or a kind is invalid, or the servers are of several kinds.
    """
    found: list[Named] = []
    of = KINDS.get(kind)
    for entry in entries:
        match = _ENTRY.fullmatch(entry)
        if match is None:
            raise BadArguments(
                f"server {entry!r} cannot be read: write [KIND=]NAME[:PORT] (for example: r1)"
            )
        of = _kind(match["kind"]) if match["kind"] else of
        _must_be_free(match["name"], [one.node for one in found])
        found.append(Named(match["name"], of, int(match["port"]) if match["port"] else None))
    kinds = dict.fromkeys(one.kind.name if one.kind else "" for one in found)
    if len(kinds) > 1:
        raise BadArguments(f"the servers of a lock must be of one kind, not {', '.join(kinds)}")
    return Foreign(tuple(found), Path(compose) if compose else None)


def _kind(text: str) -> Kind:
    if text.endswith(".py"):
        return load(Path(text))
    if text not in KINDS:
        raise BadArguments(
            f"there is no kind of server {text!r}; choose one of: {', '.join(KINDS)}, or name a "
            "file that defines one: ./mydb.py=NAME (docs/your-servers.md)"
        )
    return KINDS[text]


def _must_be_free(name: str, others: Sequence[str]) -> None:
    if name in others:
        raise BadArguments(f"server {name!r} is named twice")
    if name in _TAKEN or re.fullmatch(r"client-\d+", name):
        raise BadArguments(
            f"a server cannot have the name {name!r}, which a test uses for something else: name "
            "its container with --containers, if necessary by its id"
        )
