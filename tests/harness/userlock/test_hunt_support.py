"""Which imports of a user lock cannot be simulated."""

from __future__ import annotations

import pytest

from fencepost.harness.api.hunted import hunt
from fencepost.harness.errors import BadArguments
from fencepost.harness.userlock.hunt_support import outside_of_reach

CLUSTER, SENTINEL = "Redis Cluster has no model", "Sentinel has no model"


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("import subprocess", "subprocess, and other processes are not simulated"),
        ("from redis.cluster import RedisCluster", f"redis.cluster, and {CLUSTER}"),
        ("from redis import RedisCluster", f"redis.RedisCluster, and {CLUSTER}"),
        ("from redis.asyncio.cluster import RedisCluster", f"redis.asyncio.cluster, and {CLUSTER}"),
        ("from redis.asyncio import RedisCluster", f"redis.asyncio.RedisCluster, and {CLUSTER}"),
        ("from redis.sentinel import Sentinel", f"redis.sentinel, and {SENTINEL}"),
        ("from redis import Sentinel", f"redis.Sentinel, and {SENTINEL}"),
        ("from redis.asyncio.sentinel import Sentinel", f"redis.asyncio.sentinel, and {SENTINEL}"),
        ("from redis.asyncio import Sentinel", f"redis.asyncio.Sentinel, and {SENTINEL}"),
        ("import aetcd", "aetcd, and grpcio makes its connections outside of Python: etcd's JSON"),
        ("import grpc", "grpc, and its connections are made outside of Python"),
        ("import psycopg", "psycopg, and libpq makes its connections outside of Python"),
        ("import redis.asyncio as redis", ""),
        ("from redis.asyncio.lock import Lock", ""),
    ],
)
def test_an_import_that_is_not_simulated_is_named_with_the_reason(tmp_path, line, why):
    file = tmp_path / "mine.py"
    file.write_text(line + "\n")
    found = outside_of_reach({"mine.py": file})
    assert found.startswith(f"mine.py imports {why}") if why else not found


def test_the_lock_of_aetcd_is_refused_with_or_without_the_library():
    with pytest.raises(BadArguments, match="aetcd cannot be simulated: grpcio makes its conn"):
        hunt("aetcd", budget="1s")
