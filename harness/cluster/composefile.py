"""The Compose file of all nodes, made from the kinds of servers, for Compose v2 and for 1.29.

It is JSON, which is YAML, and is handed to Compose as it is needed. A run starts only the nodes
that it needs. No port is published and the network is internal: nothing here can be reached from
outside, and nothing in it can reach the world.
"""

from __future__ import annotations

import json
from typing import Any

from fencepost.compose.node.places import PROGRAM
from fencepost.harness.cluster import nodes
from fencepost.harness.cluster.ours import LABELS
from fencepost.nemesis.targets import STORAGE

IMAGE = "fencepost-node"
_NETWORK = "cluster"
# A node that is to mount something: it may, also FUSE's device, and AppArmor does not forbid it.
_CAPABILITIES = ["NET_ADMIN", "SYS_PTRACE"]
_MOUNTS = {"cap_add": [*_CAPABILITIES, "SYS_ADMIN"], "device_cgroup_rules": ["c 10:229 rwm"]}
_UNCONFINED, _NO_MORE = "apparmor:unconfined", "no-new-privileges:true"


def content(image: str = IMAGE, mounts: bool = True, sudo: bool = False) -> str:
    """The file's text, every node from this image.

    `mounts`: servers' nodes may mount file systems and cgroups, as some families of faults do.
    `sudo`: users in a node may become root.
    """
    services = {node: _service(node, image, mounts, sudo) for node in nodes.every()}
    networks = {_NETWORK: {"internal": True, "labels": LABELS}}
    file = {"services": services, "networks": networks}
    return json.dumps(file, indent=1)


def _service(node: str, image: str, mounts: bool, sudo: bool) -> dict[str, Any]:
    role = nodes.role(node)
    mounting = mounts and role != nodes.CLIENT and node != STORAGE
    service: dict[str, Any] = {
        "image": image,
        "hostname": node,
        "networks": [_NETWORK],
        "cap_add": _CAPABILITIES,
        "security_opt": [*[_NO_MORE] * (not sudo), *[_UNCONFINED] * mounting],
        # Far more than any node uses: one that runs wild takes the machine from nobody.
        "mem_limit": "2g",
        "pids_limit": 4000,
        # A node must not come back by itself: what is down was taken down by a test.
        "restart": "no",
        "labels": LABELS,
    }
    if role == nodes.CLIENT:
        return service
    service["command"] = [role]
    service["healthcheck"] = {
        "test": ["CMD", PROGRAM, "health", role],
        "interval": "30s",
        "timeout": "4s",
        "retries": 3,
    }
    return service | _MOUNTS if mounting else service
