"""The locks that can be tested, by name."""

from __future__ import annotations

from typing import Any

from fencepost.workloads.locks.libraries.catalogue import LIBRARIES
from fencepost.workloads.locks.locktype import LockType, Option

_POLLS = {
    "retries": Option(10, what="tries after the first, before acquire gives up"),
    "retry_delay_ms": Option(100, least=1, what="the longest random delay between tries"),
    "node_timeout_ms": Option(50, least=1, what="how long one server may take to answer"),
}
_WAITS = {
    "wait_ms": Option(10_000, least=1, what="how long acquire waits for its turn"),
    "node_timeout_ms": Option(1000, least=1, what="how long one request may take"),
}
_REDIS_TOKEN = Option("none", ("none", "incr"), what="INCR together with the SET")
_ONE_WAITER = {"minority": True, "fifo": True, "one_wakeup": True}

_OURS = (
    LockType(
        name="redlock",
        what="Redlock on five independent Redis servers (redis.io, Sanfilippo)",
        make="fencepost.workloads.locks.redlock:Redlock",
        servers=5,
        options={
            "token": Option(
                "none",
                ("none", "value", "one", "majority"),
                what="where a token comes from: none; the random value read as a number; "
                "INCR on the first server; the highest INCR of the servers that granted",
            ),
            "clock_check": Option(
                True, (True, False), what="look at the clock after the servers answered"
            ),
            **_POLLS,
        },
        promises={"minority": True},
    ),
    LockType(
        name="redis",
        what="one Redis server: SET NX PX, compare-and-delete in Lua",
        make="fencepost.workloads.locks.redis:RedisLock",
        servers=1,
        options={
            "token": Option(
                "none",
                ("none", "incr", "paired"),
                what="INCR together with the SET; paired: with the lowest grant not given back",
            ),
            "watchdog": Option(
                False, (True, False), what="extend every third of the TTL while it is held"
            ),
            **_POLLS,
        },
    ),
    LockType(
        name="redis-replicated",
        what="the same on a primary with an asynchronous replica, with failover",
        make="fencepost.workloads.locks.redis_replicated:RedisReplicatedLock",
        servers=2,
        options={
            "token": _REDIS_TOKEN,
            "wait": Option(0, what="replicas that must have the key before it counts (WAIT)"),
            **_POLLS,
            "node_timeout_ms": Option(200, least=1, what="how long one server may take to answer"),
        },
        replicated=True,
    ),
)

_ETCD: dict[str, Any] = {
    "servers": 3,
    "kind": "etcd",
    "least_ttl_ms": 2000,
    "whole_seconds": True,
    # A client that closes revokes its leases, and the keys go with them.
    "ends_with": "close",
}
_SESSIONS = (
    LockType(
        name="zookeeper",
        what="ZooKeeper's recipe: ephemeral sequential znodes, each watching the one before it",
        make="fencepost.workloads.locks.zookeeper:ZooKeeperLock",
        servers=3,
        kind="zookeeper",
        options={
            "token": Option("czxid", ("czxid", "sequence"), what="of the znode"),
            **_WAITS,
        },
        promises=_ONE_WAITER,
        least_ttl_ms=1000,
        ends_with="close",
    ),
    LockType(
        name="etcd",
        what="etcd's recipe: keys with leases, each waiting for the deletion of the one before it",
        make="fencepost.workloads.locks.etcd:EtcdLock",
        options={"token": Option("revision", ("revision",), what="of the key"), **_WAITS},
        promises=_ONE_WAITER,
        sequencer=True,
        **_ETCD,
    ),
    LockType(
        name="etcd-lock-api",
        what="the lock service of the etcd server itself, taken at its word",
        make="fencepost.workloads.locks.etcd_lock_api:EtcdLockApi",
        options={
            "token": Option("none", ("none", "revision"), what="of the key that it answers with"),
            **_WAITS,
        },
        promises={"minority": True, "fifo": True},
        **_ETCD,
    ),
    LockType(
        name="chubby",
        what="Chubby's sequencer, generation and lock-delay, on etcd (Burrows 2006)",
        make="fencepost.workloads.locks.chubby:ChubbyLock",
        options={
            "token": Option("generation", ("generation",), what="rises as the lock is taken"),
            "lock_delay_ms": Option(
                1000, what="nobody is granted the lock for so long after a session has ended"
            ),
            **_POLLS,
            "retries": Option(50, what="tries after the first, before acquire gives up"),
            "node_timeout_ms": _WAITS["node_timeout_ms"],
        },
        promises={"minority": True},
        shared=True,
        sequencer=True,
        **_ETCD,
    ),
    LockType(
        name="postgres",
        what="one PostgreSQL server: an advisory or a row lock, which its connection holds",
        make="fencepost.workloads.locks.postgres:PostgresLock",
        servers=1,
        kind="postgres",
        options={
            "mode": Option("advisory", ("advisory", "row"), what="pg_advisory_lock; FOR UPDATE"),
            "token": Option("none", ("none", "sequence"), what="drawn after the grant"),
            **_WAITS,
        },
        promises={"fifo": True},
        least_ttl_ms=1000,
        whole_seconds=True,
        ends_with="connection",
    ),
)

_BROKEN = (
    LockType(
        name="broken-herd",
        what="broken on purpose: ZooKeeper's recipe with everybody watching the holder's znode",
        make="fencepost.workloads.locks.zookeeper:HerdLock",
        servers=3,
        kind="zookeeper",
        options={"token": Option("czxid", ("czxid", "sequence")), **_WAITS},
        promises=_ONE_WAITER,
        least_ttl_ms=1000,
        ends_with="close",
    ),
    LockType(
        name="none",
        what="no lock at all: what a resource that compares and sets can do without",
        make="fencepost.workloads.locks.broken:NoLock",
        servers=1,
    ),
    LockType(
        name="broken-always-yes",
        what="broken on purpose: grants to everybody, always token 1",
        make="fencepost.workloads.locks.broken:AlwaysYes",
        servers=1,
        options={"token": Option("one", ("one",)), **_POLLS},
    ),
    LockType(
        name="broken-no-owner-check",
        what="broken on purpose: releases with DEL, whoever holds the lock by then",
        make="fencepost.workloads.locks.broken:NoOwnerCheck",
        servers=1,
        options={"token": _REDIS_TOKEN, **_POLLS},
    ),
    LockType(
        name="broken-check-then-delete",
        what="broken on purpose: releases with GET, then DEL, in two steps",
        make="fencepost.workloads.locks.broken:CheckThenDelete",
        servers=1,
        options={"token": _REDIS_TOKEN, **_POLLS},
    ),
    LockType(
        name="broken-no-ttl",
        what="broken on purpose: SET NX without an expiry",
        make="fencepost.workloads.locks.broken:NoTtl",
        servers=1,
        options=_POLLS,
    ),
    LockType(
        name="broken-endless-watchdog",
        what="broken on purpose: a watchdog that goes on extending after the release",
        make="fencepost.workloads.locks.broken:EndlessWatchdog",
        servers=1,
        options={"token": _REDIS_TOKEN, **_POLLS},
    ),
)

LOCKS: dict[str, LockType] = {
    lock.name: lock for lock in (*_OURS, *_SESSIONS, *LIBRARIES, *_BROKEN)
}
"""Every lock by name."""
