"""Names the nodes: those of each kind of server, the store of the resource, and the clients."""

from __future__ import annotations

from fencepost.harness.servers.kinds import KINDS
from fencepost.nemesis.targets import STORAGE
from fencepost.workloads.resources.registry import STORES

CLIENT = "client"
MOST_CLIENTS = 10


def every() -> list[str]:
    """Return the names of all nodes that a cluster can have."""
    kinds = [kind for kind in KINDS.sound()[0] if not kind.serves and kind.starts]
    servers = [f"{kind.name}-{n}" for kind in kinds for n in range(1, kind.nodes + 1)]
    return [*servers, STORAGE, *(f"{CLIENT}-{n}" for n in range(1, MOST_CLIENTS + 1))]


def role(node: str) -> str:
    """Return the role of a node, such as redis, etcd or client. On the storage node it is the kind
    of server of the first store, which starts there; a run starts that of its own store."""
    return STORES.sound()[0][0].kind if node == STORAGE else node.rpartition("-")[0]
