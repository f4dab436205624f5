"""The rows of kazoo, on ZooKeeper, of the lock API of etcd, and of NATS."""

from __future__ import annotations

from fencepost.workloads.scenarios.register.row import Row, Runs

_THREE = Runs(3, 3, "2026-11-27", "2026-11-27")
_ZOOKEEPER = ("java", "/usr/share/zookeeper/bin/zkServer.sh")

ROWS = (
    Row(
        "kazoo-contender-stays", "kazoo, Lock", "kazoo", ("2.11.0",), "stuck",
        "acquire(blocking=False) leaves its contender behind, and the lock is stuck",
        "The connection ends before the contender of a refused `acquire(blocking=False)` is "
        "deleted, and the session continues. `acquire` returns False; when the holder releases, no "
        "client can acquire the lock until that session ends.",
        "A refused `acquire` leaves nothing behind.",
        "The cleanup catches KazooException, so ConnectionLoss too, and does not try again.",
        "Delete the contender with `client.retry`, as the release does (pull request 760).",
        ("kazoo",), _ZOOKEEPER, _THREE, thread="https://github.com/python-zk/kazoo/issues/732",
    ),
    Row(
        "kazoo-waits-past-timeout", "kazoo, Lock", "kazoo", ("2.11.0",), "slow",
        "acquire(timeout=1) waits without a limit while there is no connection",
        "The server does not answer. `acquire(timeout=1)` has not returned after 15 s.",
        "`acquire` raises LockTimeout after a second, or reports the lost connection.",
        "The limit holds for the wait in the queue, and not for the requests before it.",
        "Give the requests of `acquire` the rest of the timeout (`get(timeout)`).",
        ("kazoo",), _ZOOKEEPER, _THREE, track_record="kazoo-timeout",
    ),
    Row(
        "etcd-expired-waiter", "etcd", "etcd", ("3.4.23",), "two holders",
        "lock API: a waiter whose lease expired while it waited is granted the lock",
        "A waiter's lease expires while it waits. When the holder unlocks, the waiter is answered "
        "with a key that no longer exists, and the next client is granted the lock too.",
        "The waiter is answered with an error, because its session has expired.",
        "After the wait the server does not look whether the waiter's own key still exists.",
        "Read the own key after the wait, as 3.5 does.",
        (), ("etcd",), _THREE, ecosystem="", mended="3.5.16", track_record="etcd-expired-waiter",
        thread="https://github.com/etcd-io/etcd/issues/11456",
    ),
    Row(
        "nats-kv-power-loss", "NATS, JetStream", "nats-server", ("2.9.10",), "two holders",
        "A lock that was granted is gone after a loss of power",
        "A client creates a key of a bucket, which the server acknowledges, and the machine loses "
        "power. After its restart the server has no such key: `create` of a second client succeeds "
        "while the first one counts on the lock.",
        "Acknowledged writes survive a restart of the server.",
        "The server answers before it calls fsync, which it does every two minutes.",
        "Set `sync_interval: always` in the block `jetstream` of the configuration (since 2.10), "
        "or rely on a majority of machines that do not lose power together.",
        ("nats",), ("nats-server", "mkfs.ext4"), Runs(4, 4, "2026-11-27", "2026-11-27"),
        ecosystem="", thread="https://github.com/nats-io/nats-server/issues/7567",
    ),
)  # fmt: skip
