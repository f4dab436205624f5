"""The libraries by name: where each runs, what it lets one choose, what its makers promise."""

from __future__ import annotations

from typing import Any

from fencepost.workloads.locks.locktype import LockType, Option

_MAKE = "fencepost.workloads.locks.libraries."
_CODE = "/run/fencepost/code/fencepost/workloads/programs"
_INSTALLED = "/opt/fencepost/libraries"
_JARS = (
    "curator-recipes", "curator-framework", "curator-client", "zookeeper", "zookeeper-jute",
    "guava", "slf4j-api", "jackson-core", "jackson-annotations", "jackson-databind",
)  # fmt: skip


def _waits(wait_ms: int, node_timeout_ms: int) -> dict[str, Option]:
    return {
        "wait_ms": Option(wait_ms, least=1, what="how long acquire waits for the lock"),
        "node_timeout_ms": Option(node_timeout_ms, least=1, what="how long one request may take"),
    }


def _client_retries(default: int) -> dict[str, Option]:
    words = "how often redis-py's client sends a request again by itself (its own default: 10)"
    return {"client_retries": Option(default, what=words)}


def _etcd(name: str, what: str, make: str, options: dict[str, Option]) -> LockType:
    return LockType(
        name=name,
        what=what,
        make=f"{_MAKE}{make}",
        servers=3,
        kind="etcd",
        options=options,
        library=name,
        least_ttl_ms=2000,
        whole_seconds=True,
        # Each lock has a lease of its own, which closing the client does not revoke.
        ends_with="lease",
    )


_CZXID = Option("czxid", ("czxid", "none"), what="of the hold's znode")
_ZOOKEEPER: dict[str, Any] = {
    "servers": 3,
    "kind": "zookeeper",
    "promises": {"minority": True, "fifo": True},
    "least_ttl_ms": 1000,
    "extends": False,
    # Closing the client ends its session, and the ephemeral znodes go with it.
    "ends_with": "close",
}

LIBRARIES = (
    LockType(
        name="redis-py",
        what="library redis-py (PyPI): redis.lock.Lock on one Redis server",
        make=f"{_MAKE}redis_py:RedisPyLock",
        servers=1,
        options={**_waits(1000, 1000), **_client_retries(10)},
        library="redis-py",
    ),
    LockType(
        name="pottery",
        what="library pottery (PyPI): its Redlock on five Redis servers",
        make=f"{_MAKE}pottery:PotteryLock",
        servers=5,
        options={**_waits(1000, 50), **_client_retries(0)},
        promises={"minority": True},
        library="pottery",
    ),
    LockType(
        name="redlock-py",
        what="library redlock-py (PyPI): its Redlock on five Redis servers",
        make=f"{_MAKE}redlock_py:RedlockPyLock",
        servers=5,
        options={
            "retries": Option(3, least=1, what="how often it tries before it gives up"),
            "retry_delay_ms": Option(200, least=1, what="the time between two tries"),
            "node_timeout_ms": Option(50, least=1, what="how long one server may take"),
            **_client_retries(0),
        },
        promises={"minority": True},
        library="redlock-py",
        extends=False,
    ),
    LockType(
        name="python-redis-lock",
        what="library python-redis-lock (PyPI): redis_lock.Lock on one Redis server",
        make=f"{_MAKE}python_redis_lock:PythonRedisLock",
        servers=1,
        options={
            "auto_renewal": Option(
                False, (True, False), what="a thread of its own extends while it is held"
            ),
            "wait_s": Option(1, least=1, what="how long acquire waits, in whole seconds"),
            "node_timeout_ms": Option(
                1500, least=1, what="how long one request may take: longer than acquire waits"
            ),
            **_client_retries(10),
        },
        library="python-redis-lock",
        least_ttl_ms=1000,
        whole_seconds=True,
    ),
    LockType(
        name="kazoo",
        what="library kazoo (PyPI): kazoo.recipe.lock.Lock on ZooKeeper",
        make=f"{_MAKE}kazoo:KazooLock",
        options={"token": _CZXID, **_waits(10_000, 1000)},
        library="kazoo",
        **_ZOOKEEPER,
    ),
    _etcd(
        "aetcd",
        "library aetcd (PyPI): its lock, through one server of an etcd cluster",
        "aetcd:AetcdLock",
        {
            "token": Option("revision", ("revision", "none"), what="of the put that took the lock"),
            **_waits(1000, 1000),
        },
    ),
    _etcd(
        "etcd3gw",
        "library etcd3gw (PyPI): its lock, through the gateway of one server of an etcd cluster",
        "etcd3gw:Etcd3gwLock",
        {"node_timeout_ms": Option(1000, least=1, what="how long one request may take")},
    ),
    LockType(
        name="curator",
        what="library Curator (JVM, Debian): InterProcessMutex on ZooKeeper",
        make="",
        options={"token": _CZXID, **_waits(10_000, 1000)},
        library="curator",
        program=(
            "java", "-Xmx64m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp",
            ":".join(
                [f"{_INSTALLED}/curator", *(f"/usr/share/java/{jar}.jar" for jar in _JARS)]
            ),
            "Worker",
        ),
        **_ZOOKEEPER,
    ),
    LockType(
        name="node-redlock",
        what="library redlock (npm, on ioredis): Redlock on five Redis servers",
        make="",
        servers=5,
        options={
            "retries": Option(10, what="how often it tries again before it gives up"),
            "retry_delay_ms": Option(200, least=1, what="the time between two tries, about"),
            "node_timeout_ms": Option(50, least=1, what="how long one server may take"),
        },
        promises={"minority": True},
        library="node-redlock",
        program=(
            "env", f"NODE_PATH={_INSTALLED}/node-redlock/node_modules", "nodejs",
            f"{_CODE}/node-redlock/worker.js",
        ),
    ),
)  # fmt: skip
"""Their servers, options and promises; the adapters are imported by workers alone."""
