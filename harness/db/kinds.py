"""The kinds of servers that the nodes run."""

from __future__ import annotations

from fencepost.harness.db.server import PID_FILE, Kind

REDIS = Kind("redis", 6379, ("redis-server", "--version"), ("wall",), faketime=True)
ZOOKEEPER = Kind(
    "zookeeper",
    2181,
    ("dpkg-query", "-W", "-f", "zookeeper ${Version}", "zookeeper"),
    ("wall", "monotonic"),
    leads=True,
)
# There are two of them in the image: the one that runs.
_ETCD = f'"$(readlink /proc/$(cat {PID_FILE})/exe)" --version'
ETCD = Kind("etcd", 2379, ("bash", "-c", _ETCD), ("wall", "monotonic"), leads=True, members=True)
POSTGRES = Kind(
    "postgres",
    5432,
    ("/usr/lib/postgresql/15/bin/postgres", "--version"),
    ("wall",),
    forks=True,
)

KINDS = {kind.role: kind for kind in (REDIS, ZOOKEEPER, ETCD, POSTGRES)}
