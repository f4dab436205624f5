"""Servers that are there already, in containers that are not ours, as they are named.

    r1,r2                  two servers of the lock's own kind
    redis=r1,r2            of this kind
    ./mydb.py=db1:7000     of the kind in a file, on this port

A name is that of a container, or with a Compose file of a service. It is the node's name in the
test as well.
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
# What stands for several nodes, or for one of ours.
_TAKEN = {*SHAPES, *SERVERS, PRIMARY, STORAGE, "server", "client", "clients", "rolling"}


@dataclass(frozen=True)
class Named:
    """One server as it was named. `kind` None: of no kind that fencepost knows.

    `port` None: its kind's, or else the only one that its image exposes.
    """

    node: str
    kind: Kind | None
    port: int | None = None


@dataclass(frozen=True)
class Foreign:
    """The servers of a test that are not ours. `compose`: they are services of this file."""

    servers: tuple[Named, ...]
    compose: Path | None = None

    @property
    def kind(self) -> Kind | None:
        """The kind of the servers, all of which are of one."""
        return self.servers[0].kind


@cache
def read(entries: tuple[str, ...], kind: str, compose: str = "") -> Foreign:
    """The servers that were named; `kind` is that of those of which nothing is said.

    Raises:
        BadArguments: a name or a kind that cannot be, or servers of several kinds.
    """
    found: list[Named] = []
    of = KINDS.get(kind)
    for entry in entries:
        match = _ENTRY.fullmatch(entry)
        if match is None:
            raise BadArguments(f"server {entry!r} cannot be read: write [KIND=]NAME[:PORT], r1 say")
        of = _kind(match["kind"]) if match["kind"] else of
        _must_be_free(match["name"], [one.node for one in found])
        found.append(Named(match["name"], of, int(match["port"]) if match["port"] else None))
    kinds = dict.fromkeys(one.kind.name if one.kind else "" for one in found)
    if len(kinds) > 1:
        raise BadArguments(f"the servers of a lock are of one kind, not of {', '.join(kinds)}")
    return Foreign(tuple(found), Path(compose) if compose else None)


def _kind(text: str) -> Kind:
    if text.endswith(".py"):
        return load(Path(text))
    if text not in KINDS:
        raise BadArguments(
            f"there is no kind of server {text!r}; choose one of: {', '.join(KINDS)}, or name a "
            "file of your own, ./mydb.py=NAME (docs/your-servers.md)"
        )
    return KINDS[text]


def _must_be_free(name: str, others: Sequence[str]) -> None:
    if name in others:
        raise BadArguments(f"server {name!r} is named twice")
    if name in _TAKEN or re.fullmatch(r"client-\d+", name):
        raise BadArguments(
            f"{name!r} means something else in a test, so that a server cannot be called so: name "
            "its container with --containers, by its id if need be"
        )
