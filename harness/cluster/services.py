"""What the container of each node is: its image, rights, limits, labels, and what runs in it.

A run starts only the nodes that it needs. No port is published and the network is internal:
nothing here can be reached from outside, and nothing in it can reach the world.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass

from fencepost.harness.cluster import nodes
from fencepost.nemesis.targets import STORAGE
from fencepost.node.places import PROGRAM

# A node that is to mount something: it may, also FUSE's device, and AppArmor does not forbid it.
_CAPABILITIES = ("NET_ADMIN", "SYS_PTRACE")
_MOUNTS, _FUSE = "SYS_ADMIN", "c 10:229 rwm"
_UNCONFINED, _NO_MORE = "apparmor:unconfined", "no-new-privileges:true"
# What `fencepost-node run` becomes where there is no server to start.
_IDLE = ("tini", "-g", "--", "sleep", "infinity")


@dataclass(frozen=True)
class Service:
    """A node's container. `command`: the kind of server that it starts by itself. `entrypoint`:
    what is run in the place of the image's own, which would start nothing.

    `health`: the command by which Docker asks whether the server serves.
    """

    image: str
    capabilities: tuple[str, ...]
    security: tuple[str, ...]
    devices: tuple[str, ...] = ()
    entrypoint: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    health: tuple[str, ...] = ()
    # Far more than any node uses: one that runs wild takes the machine from nobody.
    memory: str = "2g"
    processes: int = 4000

    @property
    def fingerprint(self) -> str:
        """Differs from that of a container which is anything else."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()


def service(node: str, image: str, mounts: bool = True, sudo: bool = False) -> Service:
    """The container of a node.

    `mounts`: servers' nodes may mount file systems and cgroups, as some families of faults do.
    `sudo`: users in a node may become root.
    """
    role = nodes.role(node)
    mounting = mounts and role != nodes.CLIENT and node != STORAGE
    return Service(
        image=image,
        capabilities=(*_CAPABILITIES, *[_MOUNTS] * mounting),
        security=(*[_NO_MORE] * (not sudo), *[_UNCONFINED] * mounting),
        devices=(_FUSE,) * mounting,
        entrypoint=_IDLE if role == nodes.CLIENT else (),
        command=() if role == nodes.CLIENT else (role,),
        health=() if role == nodes.CLIENT else (PROGRAM, "health", role),
    )
