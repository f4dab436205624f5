"""Failover of a replicated Redis: the primary dies and its replica is promoted in its current
state.

Writes that the primary had acknowledged but not sent are lost, because Redis replicates
asynchronously. When the fault ends, the old primary returns as a replica of the new one, as under
Sentinel.
"""

from __future__ import annotations

from random import Random
from typing import Any

from fencepost.nemesis.family import Colour, Family
from fencepost.nemesis.fault_spec import Asked
from fencepost.nemesis.nemesis import Fault, Receipt
from fencepost.nemesis.site import Site
from fencepost.nemesis.targets import Drawn, Layout


class Failover:
    def __init__(self, site: Site) -> None:
        self._site = site
        self._was: dict[str, tuple[str, str]] = {}

    def inject(self, fault: Fault) -> Receipt:
        roles = {node: self._role(node) for node in self._site.servers}
        primary = next((node for node, role in roles.items() if role[0] == "master"), None)
        replica = next((node for node, role in roles.items() if role[0] == "slave"), None)
        if primary is None or replica is None:
            return Receipt(False, f"no primary with a replica exists: {roles}")
        pid = self._site.server(primary).kill()
        gone = pid is not None and self._site.remote(primary).state(pid) is None
        self._site.remote(replica).run(["redis-cli", "replicaof", "no", "one"])
        self._was[fault.name] = (primary, replica)
        role = self._role(replica)[0]
        return Receipt(
            gone and role == "master",
            f"pid {pid} on {primary} is {'gone' if gone else 'still running'}; {replica} reports "
            f"role {role}",
            {"pid": pid, "primary": replica, "was": primary, "role": role},
        )

    def heal(self, fault: Fault) -> Receipt:
        if fault.name not in self._was:
            return Receipt(False, "no failover had happened")
        old, new = self._was[fault.name]
        server = self._site.server(old)
        # From its first moment on: otherwise it would answer as a primary.
        server.start(PRIMARY=self._site.address(new))
        server.wait_ready()
        role = self._role(old)[0]
        del self._was[fault.name]
        return Receipt(role == "slave", f"{old} is back and reports role {role}", {"role": role})

    def _role(self, node: str) -> list[str]:
        done = self._site.remote(node).run(
            ["timeout", "2", "redis-cli", "role"], timeout_s=5.0, check=False
        )
        return done.out.split() or [f"no answer (exit code {done.code})"]


def draw(random: Random, at: Layout, asked: Asked) -> list[Drawn]:
    return [Drawn(list(at.servers), {})]


def validate(at: Layout, targets: list[str], arguments: dict[str, Any]) -> None:
    if not at.replicated:
        raise ValueError(
            "a lock on one server cannot fail over, and Sentinel fails over by itself: pause or "
            "kill its primary. Those that can be made to are: redis-replicated"
        )


def describe(targets: list[str], arguments: dict[str, Any]) -> str:
    return f"{targets[0]} fails over, or its successor"


FAMILY = Family(
    name="failover",
    what="kills the primary of a replicated Redis, and promotes its replica",
    receipt="the pid is gone, and the replica reports that it is master",
    make=lambda site, chains: Failover(site),
    draw=draw,
    describe=describe,
    strikes=(),
    validate=validate,
    forgets=True,
    ours_alone="it starts the servers with its own settings",
    colour=Colour("#96557f", "#cf8db6"),
)
