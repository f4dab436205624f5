"""The rows of ZooKeeper with kazoo and Curator, of etcd with its Go client, and of NATS."""

from __future__ import annotations

from functools import partial

from fencepost.workloads.scenarios.register.row import Row, Runs

_FOUR = Runs(4, 4, "2026-11-27", "2026-11-28")
_TODAY = "2026-11-28"
_FOUR_TODAY = Runs(4, 4, _TODAY, _TODAY)
_go = partial(
    Row,
    software="etcd, Go package concurrency",
    package="go.etcd.io/etcd/client/v3",
    ecosystem="go",
    modules=(),
    programs=("etcd", "go"),
    files=("/usr/share/gocode/src/go.etcd.io/etcd",),
    runs=_FOUR_TODAY,
)
_ZOOKEEPER = ("java", "/usr/share/zookeeper/bin/zkServer.sh")
_curator = partial(
    Row,
    package="curator",
    ecosystem="",
    versions=("5.4.0",),
    modules=(),
    programs=("java", "javac"),
    files=("/usr/share/java/curator-recipes.jar", "/usr/share/java/zookeeper.jar"),
    runs=_FOUR_TODAY,
)

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
        ("kazoo",), _ZOOKEEPER, _FOUR, thread="https://github.com/python-zk/kazoo/issues/732",
    ),
    Row(
        "kazoo-waits-past-timeout", "kazoo, Lock", "kazoo", ("2.11.0",), "slow",
        "acquire(timeout=1) waits without a limit while there is no connection",
        "The server does not answer. `acquire(timeout=1)` has not returned after 15 s.",
        "`acquire` raises LockTimeout after a second, or reports the lost connection.",
        "The limit holds for the wait in the queue, and not for the requests before it.",
        "Give the requests of `acquire` the rest of the timeout (`get(timeout)`).",
        ("kazoo",), _ZOOKEEPER, _FOUR, track_record="kazoo-timeout",
    ),
    Row(
        "kazoo-acquired-stays", "kazoo, Lock", "kazoo", ("2.11.0",), "silent",
        "is_acquired stays True after the session has ended, and release() returns True",
        "A holder is paused for longer than its session, and another client acquires the lock. "
        "When the first continues, `is_acquired` is True, and `release()` returns True. (A "
        "listener of the client gets LOST, as the documentation of Lock says.)",
        "`is_acquired` is False once the session has ended, and `release()` returns False.",
        "`is_acquired` is set by `acquire` and cleared by `release` only, which takes a missing "
        "node for a deleted one.",
        "Clear `is_acquired` when the client's state becomes LOST. Until then, add a listener.",
        ("kazoo",), ("java",), _FOUR_TODAY, files=("/usr/share/java/zookeeper.jar",),
    ),
    _curator(
        "curator-mutex-acquired-stays", "Curator, InterProcessMutex", impact="silent",
        title="isAcquiredInThisProcess stays true after the session has ended",
        happens="A holder is cut off for longer than its session, and another client acquires the "
        "mutex. When the first is connected again, `isAcquiredInThisProcess` is true, and "
        "`release` returns. (A listener of the connection gets LOST.)",
        expected="`isAcquiredInThisProcess` is false once the session has ended, and `release` "
        "throws.",
        why="The mutex keeps its holders by thread, and looks neither at the session nor at the "
        "node. A delete takes a missing node for a deleted one.",
        fix="Keep the session's id with the holder, and compare it. Until then, add a listener of "
        "the connection, as the documentation recommends.",
    ),
    _curator(
        "curator-mutex-dead-session", "Curator, InterProcessMutex", impact="two holders",
        title="acquire succeeds by the node of a session that is about to expire",
        happens="The connection of a client ends when its `acquire` has made a node, and it gets a "
        "new session before the server ends the old one. `acquire` finds the node first in the "
        "queue and returns. Some seconds later the server deletes the node, and another client "
        "acquires the lock. The first one hears of no lost connection after its `acquire`.",
        expected="`acquire` succeeds by a node of its own session only.",
        why="It looks at the place of its node in the queue, and not at its `ephemeralOwner`.",
        fix="Compare `ephemeralOwner` of the node with the session before returning, and begin "
        "again if they differ, as pull request 500 does for LeaderLatch.",
        thread="https://github.com/apache/curator/issues/1121",
    ),
    _curator(
        "curator-latch-dead-session", "Curator, LeaderLatch", impact="two holders",
        title="a candidate leads by the node of a session that is about to expire",
        happens="The connection of a leader ends, `notLeader` is called, and it gets a new session "
        "before the server ends the old one. It finds its old node first in the queue, and leads. "
        "Some seconds later the server deletes the node, and another candidate leads, too. "
        "`hasLeadership` of the first one stays true, and `notLeader` is not called.",
        expected="A candidate leads by a node of its own session only.",
        why="After a reconnect it looks for the place of its old node, and not at the node's "
        "`ephemeralOwner`. A leader does not watch its own node.",
        fix="Compare `ephemeralOwner` with the session, as pull request 500 does (not run here). "
        "Until then, close the latch when it calls `notLeader`, and make another one.",
        thread="https://github.com/apache/curator/pull/500",
    ),
    Row(
        "zookeeper-diff-loses", "ZooKeeper", "zookeeper", ("3.8.0",), "two holders",
        "A follower that crashes while it synchronizes erases writes that others have acknowledged",
        "A lock is granted while one follower is down. It comes back when the other one is down, "
        "and is killed while it synchronizes. When both followers start again, it leads, and the "
        "lock is gone: another client creates it, too. The session of the first lasts, and no disk "
        "was lost.",
        "A write that a majority has logged is not lost.",
        "A follower that synchronizes by DIFF stores the new epoch and then logs the writes. "
        "A crash in between leaves the newest epoch with an old log. Elections compare epochs "
        "first, so it wins, and has the others truncate their logs.",
        "Store the epoch after the log, as pull request 2111 does (since 3.8.4 and 3.9.2).",
        ("kazoo",), ("java",), Runs(7, 7, _TODAY, _TODAY), ecosystem="", mended="3.9.3",
        files=("/usr/share/java/zookeeper.jar",),
        thread="https://github.com/apache/zookeeper/pull/2111",
    ),
    Row(
        "etcd-expired-waiter", "etcd", "etcd", ("3.4.23",), "two holders",
        "lock API: a waiter whose lease expired while it waited is granted the lock",
        "A waiter's lease expires while it waits. When the holder unlocks, the waiter is answered "
        "with a key that no longer exists, and the next client is granted the lock too.",
        "The waiter is answered with an error, because its session has expired.",
        "After the wait the server does not look whether the waiter's own key still exists.",
        "Read the own key after the wait, as 3.5 does.",
        (), ("etcd",), _FOUR, ecosystem="", mended="3.5.16", track_record="etcd-expired-waiter",
        thread="https://github.com/etcd-io/etcd/issues/11456",
    ),
    Row(
        "etcd-stale-read", "etcd", "etcd", ("3.4.23", "3.5.16"), "two holders",
        "A leader that was paused answers a linearizable read with an overwritten value",
        "A member asks the leader for a read index, and asks again because the answer is late. The "
        "leader is paused, another member leads, and a lock changes its holder. The old leader "
        "continues and is asked for the lock. Then it gets the second request and a late "
        "acknowledgement of the first: it answers with the lock's old holder. A resource that asks "
        "etcd before each write accepts one of the old holder.",
        "A read that begins after a write has been acknowledged returns it.",
        "A request for a read index is repeated with the same id. The leader queues the second "
        "behind newer reads, takes an acknowledgement of the first for one of the second, and with "
        "it confirms all reads before it in the queue.",
        "Use a new id for each request, as pull request 21399 does (since 3.4.42, 3.5.28, 3.6.9). "
        "Until then a resource can compare tokens (fencing) in place of asking etcd.",
        (), ("etcd",), Runs(30, 30, _TODAY, _TODAY), ecosystem="", mended="3.5.30",
        thread="https://github.com/etcd-io/etcd/issues/20418",
    ),
    _go(
        "etcd-go-resign-forgets", versions=("3.4.23", "3.5.30"), impact="stuck",
        title="Election.Resign: after an error the leadership cannot be given up any more",
        happens="The context of `Resign` ends before the request is sent, and it returns an error. "
        "Called again, it returns nil, the key is still there, and no candidate is elected as "
        "long as the session lasts.",
        expected="A second `Resign` deletes the key.",
        why="`Resign` clears `leaderKey` and `leaderSession` whether or not the request succeeded.",
        fix="Clear them when the answer has come. The comparison of the revision makes a second "
        "request harmless (pull request 22211).",
        thread="https://github.com/etcd-io/etcd/issues/22123",
    ),
    _go(
        "etcd-go-campaign-leaves-key", versions=("3.4.23", "3.5.30"), impact="stuck",
        title="Election.Campaign: an error leaves the candidate's key in the queue",
        happens="The watch of a waiting candidate ends with `required revision has been "
        "compacted`. `Campaign` returns that error, `Resign` returns nil, and the key stays: when "
        "the leader resigns, no candidate is elected as long as the session lasts.",
        expected="`Campaign` deletes its key before it returns an error, or `Resign` does.",
        why="Only a context that has ended makes it resign. After another error `leaderSession` is "
        "nil, so `Resign` does nothing.",
        fix="Resign after every error (pull request 21165). Until then, close the session.",
        thread="https://github.com/etcd-io/etcd/issues/21128",
    ),
    _go(
        "etcd-go-campaign-expired", versions=("3.4.23", "3.5.16", "3.5.30"), impact="two holders",
        runs=Runs(5, 5, _TODAY, _TODAY),
        title="Election.Campaign: a candidate whose session expired while it waited is elected",
        happens="A candidate's session expires while it waits, and it waits on. When the leader "
        "resigns, `Campaign` returns nil, and the next candidate is elected, too.",
        expected="`Campaign` returns an error when its session expires.",
        why="It watches the keys before its own, and looks at its own key neither while it waits "
        "nor afterwards.",
        fix="Watch the own key, too, and return ErrElectionNotLeader (pull request 22387). Until "
        "then, end the context of `Campaign` when `Session.Done()` is closed.",
        thread="https://github.com/etcd-io/etcd/issues/19597",
    ),
    _go(
        "etcd-go-mutex-expired", versions=("3.4.23",), impact="two holders",
        runs=Runs(3, 3, _TODAY, _TODAY),
        title="Mutex.Lock: a client whose session expired while it waited is granted the lock",
        happens="A client's session expires while it waits. When the holder unlocks, `Lock` "
        "returns nil, and the next client is granted the lock, too.",
        expected="`Lock` returns an error.",
        why="After the wait it does not look whether its own key still exists.",
        fix="Read the own key after the wait, as 3.5 does (ErrSessionExpired).",
        thread="https://github.com/etcd-io/etcd/issues/11456", mended="3.5.16",
    ),
    Row(
        "nats-kv-granted-twice", "NATS, JetStream", "nats-server", ("2.9.10",), "two holders",
        "Bucket with three replicas: two clients that write one revision of a key both succeed",
        "The holder of a lock deletes its key. Two clients ask at the same time, as `create` does "
        "when it finds a deleted key: both write on top of that revision, and the server answers "
        "both that they have succeeded.",
        "The server refuses the second with `wrong last sequence`.",
        "The leader compares the revision with its stored keys when the request arrives, and not "
        "with writes that are on their way to the replicas. When it stores a write, it compares "
        "again only if the key is expected not to exist.",
        "Compare with the writes on their way, too, as 2.10.27 does; or keep the bucket on one "
        "server.",
        ("nats",), ("nats-server",), Runs(4, 5, _TODAY, _TODAY), ecosystem="", mended="2.10.27",
        thread="https://github.com/nats-io/nats-server/issues/4320",
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
        ("nats",), ("nats-server", "mkfs.ext4"), Runs(5, 5, "2026-11-27", "2026-11-28"),
        ecosystem="", thread="https://github.com/nats-io/nats-server/issues/7567",
    ),
)  # fmt: skip
