"""Defines the container of each node: its image, rights, limits, labels and command.

A run starts only the nodes that it needs. No port is published and the network is internal, so the
nodes cannot be reached from outside and cannot reach other networks.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass

from fencepost.harness.cluster import nodes
from fencepost.nemesis.targets import STORAGE

# The rights of a node that mounts file systems: mount, FUSE's device, no AppArmor profile.
_CAPABILITIES = ("NET_ADMIN", "SYS_PTRACE")
_MOUNTS, _FUSE = "SYS_ADMIN", "c 10:229 rwm"
_UNCONFINED, NO_MORE = "apparmor:unconfined", "no-new-privileges:true"
PROCESSES = 4000
"""Limit of processes of a container, far more than any uses: it protects the machine from a runaway
process."""
# The command of a node without a server.
_IDLE = ("tini", "-g", "--", "sleep", "infinity")


@dataclass(frozen=True)
class Service:
    """A node's container. `command`: the kind of server that it starts. `entrypoint`: replaces the
    image's entry point, for a node without a server.

    Docker does not check its health: commands ask the server themselves, and a check of each node
    twice a minute would take a tenth of a processor from the runs of twenty nodes.
    """

    image: str
    capabilities: tuple[str, ...]
    security: tuple[str, ...]
    devices: tuple[str, ...] = ()
    entrypoint: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    # Far more than any node uses. They protect the machine from a runaway process.
    memory: str = "2g"
    processes: int = PROCESSES

    @property
    def fingerprint(self) -> str:
        """A hash of all fields: containers with different configurations differ in it."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()


def service(node: str, image: str, mounts: bool = True, sudo: bool = False) -> Service:
    """Return the container of a node.

    `mounts`: servers' nodes may mount file systems and cgroups, which some fault families need.
    `sudo`: users in a node may become root.
    """
    role = nodes.role(node)
    mounting = mounts and role != nodes.CLIENT and node != STORAGE
    return Service(
        image=image,
        capabilities=(*_CAPABILITIES, *[_MOUNTS] * mounting),
        security=(*[NO_MORE] * (not sudo), *[_UNCONFINED] * mounting),
        devices=(_FUSE,) * mounting,
        entrypoint=_IDLE if role == nodes.CLIENT else (),
        command=() if role == nodes.CLIENT else (role,),
    )
