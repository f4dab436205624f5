"""Registers the kinds of servers: fencepost's own and those of installed packages."""

from __future__ import annotations

import re
from typing import get_args

from fencepost.harness.errors import BadArguments
from fencepost.harness.servers import (
    etcd,
    kube_apiserver,
    kubernetes,
    pgbouncer,
    postgres,
    redis,
    sentinel,
    valkey,
    zookeeper,
)
from fencepost.node.kind import Kind, Survives
from fencepost.registry import Registry


def check(kind: Kind) -> None:
    """Raise ValueError if a kind's crash lines or its persistence are invalid."""
    for value, survived in kind.persistence.items():
        if survived not in get_args(Survives):
            raise ValueError(f"persistence {value} of {kind.name}: {survived!r} is no event")
    for pattern in (*kind.crash_lines, *kind.loss_lines):
        try:
            in_every_line = re.search(pattern, "") is not None
            re.compile(f"|{pattern}")  # it becomes a part of a longer one
        except re.error as error:
            raise ValueError(f"crash line {pattern!r} of {kind.name}: {error}") from error
        if in_every_line:
            raise ValueError(f"crash line {pattern!r} of {kind.name} matches every line")


KINDS: Registry[Kind] = Registry(
    "fencepost.servers",
    Kind,
    (
        redis.KIND,
        zookeeper.KIND,
        etcd.KIND,
        postgres.KIND,
        pgbouncer.KIND,
        valkey.KIND,
        sentinel.KIND,
        kubernetes.KIND,
        kube_apiserver.KIND,
    ),
    check,
)


def roles() -> list[str]:
    """Return the kinds that have their own nodes."""
    return [kind.name for kind in KINDS.values() if not kind.serves]


def independent(role: str) -> bool:
    """Return whether servers of this kind know nothing of one another; False for an unknown
    kind."""
    return role in KINDS and KINDS[role].independent


def versions(role: str) -> list[str]:
    """Return the values of `--server ROLE=`: the versions, default first, then other kinds."""
    others = [kind.name for kind in KINDS.values() if kind.serves == role]
    return [*KINDS[role].versions, *others]


def chosen(role: str, version: str = "") -> tuple[Kind, str]:
    """Return the kind and the version that run in this role: as chosen, or the defaults.

    Raises:
        BadArguments: there is no such kind or version; the text lists all.
    """
    if role not in KINDS or KINDS[role].serves:
        raise BadArguments(f"there is no server {role!r}; choose one of: {', '.join(roles())}")
    kind = KINDS[role]
    if not version or version in kind.versions:
        return kind, version or kind.versions[0]
    other = KINDS.get(version)
    if other is None or other.serves != role:
        raise BadArguments(
            f"there is no {role} {version!r}; choose one of: {', '.join(versions(role))}"
        )
    return other, other.versions[0]
