"""The registry of locks: built-in ones, a line each, and those of installed packages."""

from __future__ import annotations

from fencepost.registry import Registry
from fencepost.workloads.contract.locktype import LockType
from fencepost.workloads.electors import (
    curator_latch,
    curator_selector,
    kazoo_election,
    kubernetes_aio,
    kubernetes_client,
    postgres_leader,
)
from fencepost.workloads.locks import (
    broken,
    chubby,
    etcd,
    etcd_lock_api,
    mariadb,
    nats,
    postgres,
    postgres_lease,
    redis,
    redis_replicated,
    redlock,
    redlock_npm,
    zookeeper,
)
from fencepost.workloads.locks.libraries import (
    aetcd,
    curator,
    etcd3gw,
    kazoo,
    node_redlock,
    pottery,
    python_redis_lock,
    redis_py,
    redlock_py,
)

LOCKS = Registry(
    "fencepost.locks",
    LockType,
    (
        redlock.LOCK,
        redlock_npm.LOCK,
        redis.LOCK,
        redis_replicated.LOCK,
        zookeeper.LOCK,
        etcd.LOCK,
        etcd_lock_api.LOCK,
        chubby.LOCK,
        postgres.LOCK,
        postgres_lease.LOCK,
        mariadb.LOCK,
        nats.LOCK,
        redis_py.LOCK,
        redis_py.SENTINEL,
        pottery.LOCK,
        redlock_py.LOCK,
        python_redis_lock.LOCK,
        kazoo.LOCK,
        aetcd.LOCK,
        etcd3gw.LOCK,
        curator.LOCK,
        node_redlock.LOCK,
        kubernetes_client.ELECTOR,
        kubernetes_aio.ELECTOR,
        kazoo_election.ELECTOR,
        curator_latch.ELECTOR,
        curator_selector.ELECTOR,
        postgres_leader.ELECTOR,
        postgres_leader.POOLED,
        broken.HERD,
        broken.NONE,
        broken.ALWAYS_YES,
        broken.NO_OWNER_CHECK,
        broken.CHECK_THEN_DELETE,
        broken.NO_TTL,
        broken.ENDLESS_WATCHDOG,
    ),
)
