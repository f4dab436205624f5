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
# What happens to a server's disk is done in its node: a file system of its own is mounted there.
_SERVER = {
    "cap_add": ["NET_ADMIN", "SYS_PTRACE", "SYS_ADMIN"],
    "device_cgroup_rules": ["c 10:229 rwm"],
    "security_opt": ["apparmor:unconfined"],
}


def content(image: str = IMAGE) -> str:
    """The file's text, every node from this image."""
    services = {node: _service(node, image) for node in nodes.every()}
    networks = {_NETWORK: {"internal": True, "labels": LABELS}}
    file = {"services": services, "networks": networks}
    return json.dumps(file, indent=1)


def _service(node: str, image: str) -> dict[str, Any]:
    role = nodes.role(node)
    service: dict[str, Any] = {
        "image": image,
        "hostname": node,
        "networks": [_NETWORK],
        "cap_add": ["NET_ADMIN", "SYS_PTRACE"],
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
    return service if node == STORAGE else service | _SERVER
