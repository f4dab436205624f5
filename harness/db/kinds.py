"""The kinds of servers that the nodes run."""

from __future__ import annotations

from harness.db.server import Kind

REDIS = Kind("redis", 6379, ("redis-server", "--version"), ("wall",), faketime=True)
ZOOKEEPER = Kind(
    "zookeeper",
    2181,
    ("dpkg-query", "-W", "-f", "zookeeper ${Version}", "zookeeper"),
    ("wall", "monotonic"),
)
ETCD = Kind("etcd", 2379, ("etcd", "--version"), ("wall", "monotonic"))

KINDS = {kind.role: kind for kind in (REDIS, ZOOKEEPER, ETCD)}
