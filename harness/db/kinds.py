"""The kinds of servers that the nodes run."""

from __future__ import annotations

from harness.db.server import Kind
from harness.remote.remote import Remote


def _redis_offset(remote: Remote) -> float:
    """TIME, as the server sees it, against `date` on the node, asked right before and after."""
    asked = "date +%s.%N; timeout 2 redis-cli time; date +%s.%N"
    before, second, micro, after = remote.run(["bash", "-c", asked]).out.split()
    return int(second) + int(micro) / 1e6 - (float(before) + float(after)) / 2


REDIS = Kind("redis", 6379, ("redis-server", "--version"), _redis_offset)
ZOOKEEPER = Kind("zookeeper", 2181, ("dpkg-query", "-W", "-f", "zookeeper ${Version}", "zookeeper"))
ETCD = Kind("etcd", 2379, ("etcd", "--version"))

POSTGRES = Kind("postgres", 5432, ("/usr/lib/postgresql/15/bin/postgres", "--version"), forks=True)

KINDS = {kind.role: kind for kind in (REDIS, ZOOKEEPER, ETCD, POSTGRES)}
