"""Membership: a server leaves, and another one with an empty disk replaces it.

The return differs. A member of etcd is removed from the cluster and added again, under a new id, as
etcd prescribes for a lost machine. A server of ZooKeeper is identified by its number, and copies
the leader's data. A Redis server takes over the name and has no data.
"""

from __future__ import annotations

import time
from random import Random
from typing import Any

from fencepost.nemesis.family import Colour, Family, Strike
from fencepost.nemesis.fault_spec import Asked
from fencepost.nemesis.nemesis import Fault, Receipt
from fencepost.nemesis.site import Site
from fencepost.nemesis.targets import PRIMARY, Drawn, Layout, listed, pick

TARGETS = ("one", PRIMARY)

# etcd changes no members before all have been in contact for 5 s (strict-reconfig-check).
_UNHEALTHY_S = 30.0
_AGAIN_S = 0.2


class Membership:
    def __init__(self, site: Site) -> None:
        self._site = site
        self._was: dict[str, str] = {}

    def inject(self, fault: Fault) -> Receipt:
        (node,) = fault.targets
        server = self._site.own_server(node)
        was = self._was[fault.name] = server.identity()
        # A removed member exits by itself, or is killed here.
        pid = server.pid()
        members = self._members_without(node) if server.removed_by_others else None
        server.kill()
        server.wipe()
        gone = pid is not None and self._site.remote(node).state(pid) is None
        how = f"pid {pid} on {node} is {'gone' if gone else 'still there'}, its data wiped"
        data: dict[str, object] = {"pid": pid, "identity": was}
        if members is not None:
            gone = gone and node not in members
            how += f"; the members are {', '.join(members) or 'not known'}"
            data["members"] = members
        return Receipt(gone, how, data)

    def heal(self, fault: Fault) -> Receipt:
        (node,) = fault.targets
        server = self._site.own_server(node)
        if server.removed_by_others:
            self._add(node)
            server.start(JOIN="existing")
        else:
            server.start()
        server.wait_ready()
        was, now = self._was.pop(fault.name, ""), server.identity()
        return Receipt(
            bool(now) and now != was,
            f"{node} serves again: it was {was or 'not seen'}, and is {now or 'not seen'}",
            {"was": was, "identity": now},
        )

    def _members_without(self, node: str) -> list[str]:
        """Remove a member of etcd through another one; return the names of the remaining ones."""
        ids = self._members(node)
        if node in ids:
            self._etcdctl(node, "member", "remove", ids[node])
        return list(self._members(node))

    def _add(self, node: str) -> None:
        """Add a member. If the request timed out, it may have been added."""
        end = time.monotonic() + _UNHEALTHY_S
        while node not in self._members(node):
            try:
                self._etcdctl(node, "member", "add", node, f"--peer-urls=http://{node}:2380")
            except RuntimeError:
                if time.monotonic() > end:
                    raise
                time.sleep(_AGAIN_S)

    def _members(self, node: str) -> dict[str, str]:
        """Return the ids of the members by name, as known by another member."""
        rows = [row.split(", ") for row in self._etcdctl(node, "member", "list").splitlines()]
        # A member that was added and has not started yet has a name only in its address.
        return {
            row[2] or row[3].removeprefix("http://").partition(":")[0]: row[0]
            for row in rows
            if len(row) > 3
        }

    def _etcdctl(self, node: str, *words: str) -> str:
        """Run a command on the first of the other servers that carries it out."""
        end = time.monotonic() + _UNHEALTHY_S
        while True:
            message = "no other server answers"
            for other in self._site.servers:
                if other == node:
                    continue
                done = self._site.remote(other).run(
                    ["env", "ETCDCTL_API=3", "etcdctl", "--command-timeout", "5s", *words],
                    timeout_s=8.0,
                    check=False,
                )
                if done.code == 0:
                    return done.out
                message = "".join((done.err or done.out).strip().splitlines()[-1:])
            if "unhealthy" not in message or time.monotonic() > end:
                raise RuntimeError(f"etcdctl {' '.join(words)}: {message}")
            time.sleep(_AGAIN_S)


def draw(random: Random, at: Layout, asked: Asked) -> list[Drawn]:
    return [Drawn(pick(random, at, asked.target or "one"), {})]


def validate(at: Layout, targets: list[str], arguments: dict[str, Any]) -> None:
    if not at.kind.replaceable:
        raise ValueError(
            "an empty server must be able to replace one that has left, and these are "
            f"{at.kind.name}"
        )
    if len(targets) != 1:
        raise ValueError("only one server leaves at a time")


def clashes(mine: Strike, other: Strike, at: Layout) -> bool:
    """With two of three etcd members gone, no majority is left to agree that one comes back."""
    return at.kind.members and other.family == mine.family


def describe(targets: list[str], arguments: dict[str, Any]) -> str:
    return f"{listed(targets)} leaves, and comes back empty"


FAMILY = Family(
    name="membership",
    what="a server leaves the cluster and comes back with an empty disk",
    receipt=(
        "its pid and its data are gone, and the other members do not list it; at the end it has "
        "another identity"
    ),
    make=lambda site, chains: Membership(site),
    draw=draw,
    describe=describe,
    targets=TARGETS,
    validate=validate,
    clashes=clashes,
    forgets=True,
    ours_alone="it deletes a server's data",
    colour=Colour("#5577ad", "#86a6da"),
)
