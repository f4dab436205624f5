"""The claims that our suites put to the test, in the order of docs/claims.md.

The tables of that page are made from here (`make docs`), with the entries that test each claim. A
package adds claims with entry points in the group fencepost.claims.
"""

from __future__ import annotations

from dataclasses import replace

from fencepost.registry import Registry
from fencepost.workloads.scenarios.claim import CONTROL, EXPLORATION, Claim, Kind


def _of(kind: Kind, *claims: Claim) -> tuple[Claim, ...]:
    return tuple(replace(claim, kind=kind) for claim in claims)


_PROPERTIES = _of(
    "property",
    Claim(
        "P1",
        "Exclusive: at most one client holds the lock at a time.",
        source="overview; redis.io",
        expected="`lease_exclusion` T with `noeviction`; F where the server evicts the key, and "
        "for a lock that always says yes",
    ),
    Claim(
        "P2",
        "No deadlock: the lock of a crashed holder becomes free.",
        source="overview",
        expected="`liveness` T; F for a lock without a TTL",
    ),
    Claim(
        "P3",
        "Only the holder can release the lock.",
        source="overview",
        expected="`ownership` T with the script; F without an owner check, and with one in two "
        "steps",
    ),
    Claim(
        "P4",
        "A few dead servers do not stop the service.",
        source="overview",
        expected="`liveness` T",
    ),
)
_ALGORITHMS = _of(
    "algorithm",
    Claim(
        "A1",
        "One Redis server: `SET key random NX PX ttl`; a script releases the lock only if the "
        "value is still the client's.",
        source="Kleppmann, overview, lock service, dingyu",
        expected="`ownership` T",
    ),
    Claim(
        "A2",
        "Watchdog: a thread of the client extends the lease every third of the TTL, and must end "
        "with the release.",
        source="lock service",
        expected="`lease_exclusion` and `liveness` T; `liveness` F where the watchdog continues "
        "after the release",
    ),
    Claim(
        "A3",
        "Redlock: ask five servers in turn, each with a timeout far below the TTL; the lock is "
        "granted if a majority agrees before the TTL expires; the lease is the TTL less the time "
        "taken; otherwise release on all five.",
        source="overview, dingyu, redis.io",
        expected="not granted after the TTL, nor by a minority, whose keys are released: all T",
    ),
    Claim(
        "A4",
        "Fencing: each grant carries a number higher than any before; the resource refuses a "
        "number lower than the highest it has seen.",
        source="Kleppmann, lock service, dingyu",
        expected="fenced `resource` T, `fencing` T",
    ),
    Claim(
        "A5",
        "ZooKeeper: each client makes an ephemeral sequential znode; the lowest one holds the "
        "lock, and each other client watches the next lower one.",
        source="Kleppmann, lock service, recipes",
        expected="in order, one waiter woken: `liveness` T; for the herd F",
    ),
    Claim(
        "A6",
        "etcd: each client puts a key with a lease; the lowest create revision holds the lock. A "
        "write can be made conditional on that key, in one transaction.",
        source="overview; Jepsen",
        expected="in order: `liveness` T; a client that gives up leaves no key: `liveness` T; in "
        "one transaction: `resource` T",
    ),
    Claim(
        "A7",
        "Chubby: the holder gets a sequencer (name, mode, generation) that the resource can "
        "check. A lock whose holder was lost stays closed for the lock-delay.",
        source="overview, Burrows",
        expected="`resource` T with the sequencer and within the lock-delay, F beyond it",
    ),
    Claim(
        "A8",
        "Optimistic writes: read a version, write only if the version is unchanged. No lock.",
        source="comments (Mullaney); Kung and Robinson 1981",
        expected="`resource` T",
    ),
    Claim(
        "A9",
        "Paired token: each grant carries its own number and the lowest number that no client "
        "has released.",
        source="comments (idelvall)",
        expected="paired: `resource` T",
    ),
)
_CLAIMS = (
    Claim(
        "C1",
        "If the clock of one of five Redis servers jumps, Redlock grants the lock twice.",
        source="Kleppmann, overview, dingyu",
        expected="`lease_exclusion` F, `mutual_exclusion` F, unguarded `resource` F",
    ),
    Claim(
        "C2",
        "A server that crashes before its data is on the disk, and restarts at once, does the "
        "same.",
        source="Kleppmann, overview",
        expected="`lease_exclusion` F",
    ),
    Claim(
        "C3",
        "`appendfsync always` prevents C2. `everysec` can lose the last second when the power "
        "fails. A restart that is delayed by the longest TTL prevents C2 as well, unless the "
        "clock jumps by which the delay is measured.",
        source="Kleppmann, overview, Sanfilippo",
        expected="T with `always` and with the delay; F possible with `everysec` and a power "
        "loss; F with the delay and a jump",
    ),
    Claim(
        "C4",
        "A client that pauses after its grant until its lease has expired, and then writes, "
        "damages the data, whatever the lock.",
        source="Kleppmann, overview, dingyu",
        expected="`lease_exclusion` T, `mutual_exclusion` F, unguarded `resource` F",
    ),
    Claim(
        "C5",
        "With fencing tokens the late write of C4 is refused.",
        source="Kleppmann, lock service, dingyu",
        expected="fenced `resource` T",
    ),
    Claim(
        "C6",
        "A look at the lease right before the write does not prevent C4: the pause can come "
        "between look and write.",
        source="Kleppmann",
        expected="guard `deadline`: `resource` F",
    ),
    Claim(
        "C7",
        "A client that pauses while the servers' replies are on their way is not granted the lock "
        "if it looks at its clock after the replies (A3), and believes wrongly if it does not.",
        source="Sanfilippo in the comments; Kleppmann",
        expected="with the look T, without it F",
    ),
    Claim(
        "C8",
        "A pause or a slow network after that look is C4 again, and needs fencing.",
        source="comments",
        expected="as C4",
    ),
    Claim(
        "C9",
        "A write that the network delays until the lease has expired does the same as C4, without "
        "a pause (GitHub 2012: about 90 s).",
        source="Kleppmann",
        expected="unguarded `resource` F, fenced T",
    ),
    Claim(
        "C10",
        "Redlock has no fencing token: its random value does not rise, a counter on one server "
        "dies with the server, counters on several servers diverge.",
        source="Kleppmann",
        expected="`fencing` F for each",
    ),
    Claim(
        "C11",
        "A random value is enough where the resource compares and sets it.",
        source="Sanfilippo, overview, comments",
        expected="`resource` T where the resource compares what the writer has read (guard "
        "`compare-and-set`), F where it is only shown the value (guard `new-value`)",
    ),
    Claim(
        "C12",
        "Two clients pause past their leases and then write in the order of their tokens: a fence "
        "accepts both writes, and one overwrites the other. A paired token (A9) prevents it.",
        source="comments (idelvall)",
        expected="fenced: `fencing` T, `resource` F; paired: `resource` T",
    ),
    Claim(
        "C13",
        "Optimistic writes (A8) need no lock.",
        source="comments (Mullaney)",
        expected="`resource` T under every fault",
    ),
    Claim(
        "C14",
        "A release that does not check the owner frees another client's lock. GET and then DEL, in "
        "two steps, can do so as well. A script cannot.",
        source="overview, lock service, dingyu",
        expected="`ownership` F, F, T",
    ),
    Claim(
        "C15",
        "With SET NX and no TTL a dead holder keeps the lock for ever.",
        source="Kleppmann, overview",
        expected="`liveness` F",
    ),
    Claim(
        "C16",
        "With an asynchronous replica a failover loses the lock: two holders. A client that waits "
        "for the replica (`WAIT`) is not granted a lock that can be lost.",
        source="overview, dingyu; redis.io",
        expected="`lease_exclusion` F, also where Sentinel promotes; with `WAIT` T",
    ),
    Claim(
        "C17",
        "One Redis server is a single point of failure. Redlock survives the loss of a minority, "
        "and with three of five servers dead no client is granted the lock.",
        source="overview, dingyu, comments",
        expected="`liveness` T with a minority down, and once the servers are back; no client is "
        "granted the lock meanwhile",
    ),
    Claim(
        "C18",
        "ZooKeeper and etcd stay safe without assumptions about time: partitions, pauses and "
        "clock errors cost liveness only, and a minority never grants. Their lease timers run on "
        "the leader's monotonic clock; jumps of that clock are outside the claim and are explored "
        "apart (`clocks`).",
        source="Kleppmann, lock service, overview, dingyu",
        expected="`lease_exclusion` T under all faults",
    ),
    Claim(
        "C19",
        "A client whose heartbeats stop loses these locks, too. One that is cut off, and not "
        "paused, notices in time.",
        source="overview",
        expected="`lease_exclusion` T",
    ),
    Claim(
        "C20",
        "Ephemeral znodes, leases and expiring keys free a dead holder's lock within the session "
        "timeout or TTL; a broken connection does where there is no lease.",
        source="lock service, overview",
        expected="`liveness` T, with the time measured",
    ),
    Claim(
        "C21",
        "ZooKeeper and etcd grant in the order of asking, and a release wakes one waiter. A "
        "recipe in which all watch the holder wakes all of them.",
        source="lock service, overview; recipes",
        expected="`liveness` T; for the herd F",
    ),
    Claim(
        "C22",
        "A lock-delay protects a resource that cannot check tokens, for pauses up to the delay.",
        source="Burrows, overview",
        expected="`resource` T below the delay, F above",
    ),
    Claim(
        "C23",
        "A resource that asks the lock service about the writer's sequencer refuses the stale "
        "holder.",
        source="Burrows, overview",
        expected="`resource` T",
    ),
    Claim(
        "C24",
        "Clock drift within the allowance of the algorithm (1 % of the TTL and 2 ms) does no "
        "harm; drift beyond it does.",
        source="Sanfilippo, overview",
        expected="`lease_exclusion` T within, F beyond",
    ),
    Claim(
        "C25",
        "Redlock costs the round trips of five servers; etcd's and ZooKeeper's locks cost a "
        "consensus.",
        source="Kleppmann, overview, dingyu",
        expected="each slower than one Redis server, with ratios",
    ),
    Claim(
        "C26",
        "A watchdog renews the lease during long work. It does not help a paused client, because "
        "it is paused too.",
        source="lock service",
        expected="as C4",
    ),
    Claim(
        "C27",
        "Where doing work twice only costs time, one Redis server is enough.",
        source="Kleppmann, overview, dingyu",
        expected="violations per 1,000 holds under each fault",
    ),
    Claim(
        "C28",
        "etcd 3.4 with a lease of 2 s, five clients and servers paused every 5 s lost about 18 % "
        "of the acknowledged updates.",
        source="Jepsen",
        expected="a share next to the published one",
    ),
    Claim(
        "C29",
        "Redis Sentinel on five nodes that a partition splits into two and three, with the "
        "primary among the two, lost 56 % of the acknowledged writes.",
        source="Jepsen 2013",
        expected="a share next to the published one",
    ),
    Claim(
        "C30",
        "NATS servers that lose power together lost 14.1 % of the acknowledged messages, because "
        "they sync their disks every two minutes only.",
        source="Jepsen 2025",
        expected="a share next to the published one",
    ),
)
_DEFECTS = _of(
    "defect",
    Claim(
        "etcd 11456",
        "The lock API of etcd 3.4 grants the lock to a waiter whose lease has expired; 3.5 "
        "refuses.",
        source="Jepsen",
    ),
    Claim(
        "L1",
        "redis-py 8.1: if the answer to SET is late, the client sends it again, finds its own key "
        "and says that it has not got the lock.",
        source="fencepost's own finding ([libraries.md](libraries.md))",
    ),
    Claim(
        "L2",
        "redlock-py 1.0.8: one dead server of five makes every acquire raise an error and leave "
        "four keys behind.",
        source="the code of `Redlock.lock`",
    ),
    Claim(
        "L3",
        "npm redlock 4.2.0: an extension without a quorum releases the lock on every server.",
        source="the code of `Redlock.prototype._lock`",
    ),
    Claim(
        "L4",
        "kazoo 2.11.0: `acquire(timeout=...)` waits without a limit while there is no connection.",
        source="the code of `Lock.acquire`",
    ),
    Claim(
        "L5",
        "python-redis-lock 4.0.1: no callback reports that the automatic renewal has failed.",
        source="the code of `Lock._lock_renewer`",
    ),
    Claim(
        "L6",
        "kubernetes 37.0.2: the election's requests have no timeout, so a leader whose request "
        "hangs leads on when its lease has expired.",
        source="the code of `LeaderElection.renew_loop`",
    ),
    Claim(
        "L7",
        "kubernetes 37.0.2: an error of the network ends `run` with an exception, and "
        "`onstopped_leading` is not called.",
        source="the code of `LeaderElection.run`",
    ),
    Claim(
        "L8",
        "kazoo 2.11.0: a leader learns of a lost connection from a listener only.",
        source="the documentation of `Election` and of `KazooState`",
    ),
    Claim(
        "L9",
        "Curator 5.4.0: LeaderLatch calls `notLeader` when its connection is SUSPENDED.",
        source="the documentation of `LeaderLatch`, Error Handling",
    ),
    Claim(
        "L10",
        "Curator 5.4.0: a leader by LeaderSelector that ignores SUSPENDED and LOST leads on; "
        "LeaderSelectorListenerAdapter has it interrupted.",
        source="the documentation of `LeaderSelector`, Error Handling",
    ),
    Claim(
        "L11",
        "PostgreSQL 15: an advisory lock of a session ends with that session; a new session does "
        "not have it.",
        source="PostgreSQL's documentation, Advisory Locks",
    ),
    Claim(
        "L12",
        "PgBouncer 1.18: with transaction pooling, session-level advisory locks are not supported.",
        source="PgBouncer's documentation, SQL feature map for pooling modes",
    ),
    Claim(
        "L13",
        "tooz 9.1.0, Redis driver: the library calls a leader when it is elected, and never when "
        "it leads no more.",
        source="the code of `RedisDriver.run_elect_coordinator` and `RedisLock.heartbeat`",
    ),
    Claim(
        "L14",
        "celery-redbeat 2.4.2: a tick extends the lock once, and sends its jobs without another "
        "look at it.",
        source="the code of `RedBeatScheduler.tick`",
    ),
    Claim(
        "L15",
        "RQ 3.0.0: the scheduler renews its lock before it reads the jobs that are due, and "
        "enqueues them without another look at it.",
        source="the code of `RQScheduler.work` and `enqueue_scheduled_jobs`",
    ),
    Claim(
        "L16",
        "APScheduler 3.11.3: an exception of a job, for example of one that cannot extend a lock, "
        "is logged, and the scheduler continues.",
        source="the code of `run_job`",
    ),
)
_RUNS = (
    Claim(
        CONTROL,
        "Every promise holds without faults. A suite whose control fails says nothing about "
        "faults.",
        kind="run",
    ),
    Claim(
        EXPLORATION,
        "Faults at random, drawn from the seed. Nothing is expected; each violation is a finding.",
        kind="run",
    ),
)

CLAIMS = Registry(
    "fencepost.claims", Claim, (*_PROPERTIES, *_ALGORITHMS, *_CLAIMS, *_DEFECTS, *_RUNS)
)
