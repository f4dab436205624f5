"""The rows of the register, and the candidates that no script shows yet.

Tests run each script against the installed version (tests/workloads/scenarios/test_register.py).
"""

from __future__ import annotations

from fencepost.workloads.scenarios.register import files_and_jobs, npm, servers
from fencepost.workloads.scenarios.register.row import NotShown, Row, Runs

_FIRST, _NEXT, _LAST = "2026-11-26", "2026-11-27", "2026-11-28"
_FOUR = Runs(4, 4, _FIRST, _LAST)
_EIGHT = Runs(8, 8, _FIRST, _LAST)
_FOUR_SINCE_NEXT = Runs(4, 4, _NEXT, _LAST)
_REDIS, _ETCD = ("redis-server",), ("etcd",)
_POSTGRES = ("initdb",)
_TOOZ = "tooz"
_ACQUIRED = "When the lock is lost and another client has acquired it, `acquired` is still True."
_TOLD = "`acquired` is False, or the heartbeat reports the loss."
_LEASES = "Each attempt of `acquire` that fails leaves a lease in etcd until its TTL has passed."
_REVOKED = "An attempt that fails leaves nothing behind."
_REVOKE = "Revoke the lease when the transaction fails, or keep it for the next attempt."
_ENTERS = "The block is entered with the lock, or an exception is raised."
_TEN_SECONDS = "`{}` calls `acquire`, whose timeout is 10 s by default, and ignores its answer."
_RAISE = "Raise an exception in `with` if `acquire` returns False, or wait without a limit there."
_FORGETS = {
    "impact": "stuck",
    "happens": "`release` meets a network error and raises. A second `release` raises LockError, "
    "although the key is on the server: without `timeout`, for ever.",
    "expected": "The owner can call `release` again.",
    "why": "`release` sets `self.local.token = None` before it asks the server.",
    "fix": "Clear the token after the server has answered, as redis-py's asyncio Lock does.",
}

ROWS = (
    Row(
        "redis-py-cancelled-acquire", "redis-py, asyncio Lock", "redis",
        ("5.0.8", "5.3.1", "6.4.0", "7.0.1", "7.4.1", "8.1.0"),
        "stuck",
        "asyncio Lock: acquire cancelled while the answer travels leaves the key",
        "A task is cancelled in `Lock.acquire` after SET reached the server. The key stays: without"
        " `timeout` (the default) for ever. `owned()` is False, and `release()` raises.",
        "A cancelled `acquire` leaves the lock free, or its owner can release it.",
        "The token is a local variable until the answer is read, so nothing can delete the key.",
        "On CancelledError, run the release script with the token (shielded), then raise.",
        ("redis",), _REDIS, _EIGHT,
    ),
    Row(
        "redis-py-reacquire-zero", "redis-py, Lock", "redis",
        ("4.6.0", "5.0.8", "5.3.1", "6.4.0", "7.0.1", "7.4.1", "8.1.0"),
        "two holders",
        "Lock(timeout=0): reacquire() deletes the lock and returns True",
        "With `timeout=0`, `acquire` sets a key without a TTL. `reacquire()` returns True, and the "
        "key is gone: another client acquires the lock.",
        "`reacquire` keeps the lock, or refuses as it does with `timeout=None`.",
        "`acquire` tests `if self.timeout`, `reacquire` tests `is None`: it sends PEXPIRE 0.",
        "Refuse `timeout=0` in the constructor, or treat it as None everywhere.",
        ("redis",), _REDIS, _EIGHT, thread="https://github.com/redis/redis-py/issues/4279",
    ),
    Row(
        "redis-py-release-forgets", "redis-py, Lock", "redis",
        ("4.6.0", "5.0.8", "5.3.1", "6.4.0", "7.0.1", "7.4.1", "8.1.0"),
        title="Lock: after a network error in release() its owner cannot release the lock",
        modules=("redis",), programs=_REDIS, runs=_EIGHT, npm=(), files=(), **_FORGETS,
        thread="https://github.com/redis/redis-py/issues/4258",
    ),
    Row(
        "valkey-py-release-forgets", "valkey-py, Lock", "valkey", ("6.2.0",),
        title="Lock: after a network error in release() its owner cannot release the lock",
        modules=("valkey",), programs=_REDIS, runs=Runs(5, 5, _FIRST, _LAST), npm=(), files=(),
        **_FORGETS,
    ),
    Row(
        "redis-py-reply-lost", "redis-py, Lock", "redis",
        ("6.0.0", "6.1.1", "6.2.0", "6.3.0", "6.4.0", "7.0.1", "7.4.1", "8.1.0"),
        "stuck",
        "Lock: if the answer to SET is lost, acquire returns False and the lock is stuck",
        "The connection ends before the answer to SET arrives. The client sends SET again, finds "
        "its own key, and `acquire` returns False. No client holds the lock. (5.3.1 does not "
        "try again: it raises.)",
        "`acquire` returns True, because the key holds the caller's token.",
        "The retry of the connection repeats SET NX, which is not idempotent.",
        "When SET NX is refused, compare the key's value with the token (SET with NX and GET).",
        ("redis",), _REDIS, Runs(12, 12, _FIRST, _LAST), track_record="redis-py-reply-lost",
    ),
    Row(
        "redlock-py-minority-down", "redlock-py", "redlock-py", ("1.0.8",), "stuck",
        "One dead server of five: every acquire raises, and leaves four keys behind",
        "With four of five servers alive, `lock()` raises MultipleRedlockException. The keys on "
        "the four servers stay until their TTL has passed.",
        "`lock()` succeeds, because a majority granted the lock.",
        "The errors of single servers are raised even if a quorum was reached.",
        "Raise only without a quorum, and only after the keys have been deleted.",
        ("redis", "redlock"), _REDIS, _FOUR, track_record="redlock-py-minority-down",
        thread="https://github.com/SPSCommerce/redlock-py/pull/27",
    ),
    Row(
        "tooz-redis-acquired", "tooz, Redis driver", _TOOZ, ("9.1.0",), "silent",
        "Redis driver: `acquired` stays True when another client has the lock",
        _ACQUIRED, _TOLD,
        "`acquired` says whether the lock is in a local set; only `release` removes it.",
        "Let `acquired` fall with the end of the TTL, measured on the local clock.",
        ("tooz", "redis"), _REDIS, _FOUR,
    ),
    Row(
        "tooz-postgresql-keys", "tooz, PostgreSQL driver", _TOOZ, ("9.1.0",), "stuck",
        "PostgreSQL driver: two names are one lock, because the key has 16 bits",
        "While one client holds `lock-2`, another is refused `lock-137`, which no client holds. A "
        "client that takes both, one after the other, waits for itself.",
        "Locks with different names are independent.",
        "The key is the first two bytes of an md5, so there are 65,536 locks in all.",
        "Use eight bytes of the digest, as the bigint of `pg_advisory_lock(bigint)`.",
        ("tooz", "psycopg2"), _POSTGRES, _FOUR,
    ),
    Row(
        "tooz-postgresql-acquired", "tooz, PostgreSQL driver", _TOOZ, ("9.1.0",), "silent",
        "PostgreSQL driver: `acquired` stays True when another client has the lock",
        _ACQUIRED, _TOLD,
        "`acquired` is an attribute that only `release` clears. The session that has the lock is "
        "not looked at again.",
        "Let `heartbeat` query each lock's session, and clear `acquired` when it is gone.",
        ("tooz", "psycopg2"), _POSTGRES, _FOUR,
    ),
    Row(
        "tooz-etcd3gw-acquired", "tooz, etcd3gw driver", _TOOZ, ("9.1.0",), "silent",
        "etcd3gw driver: `acquired` stays True when another client has the lock",
        f"{_ACQUIRED} `heartbeat()` of the lock returns True.", _TOLD,
        "`acquired` is membership in a local set. `heartbeat` ignores the TTL that the refresh of "
        "the lease returns (-1: there is no such lease).",
        "In `heartbeat`, remove the lock and return False if the refresh returns no TTL.",
        ("tooz", "etcd3gw"), _ETCD, _FOUR,
    ),
    Row(
        "tooz-etcd3gw-leases", "tooz, etcd3gw driver", _TOOZ, ("9.1.0",), "slow",
        "etcd3gw driver: every failed attempt leaves a lease in etcd",
        _LEASES, _REVOKED, "`acquire` makes a lease per attempt and does not revoke it.", _REVOKE,
        ("tooz", "etcd3gw"), _ETCD, _FOUR,
    ),
    Row(
        "etcd3gw-leases", "etcd3gw, Lock", "etcd3gw", ("2.7.0",), "slow",
        "Lock: every failed attempt leaves a lease in etcd",
        _LEASES, _REVOKED, "`acquire` makes a lease per attempt and does not revoke it.", _REVOKE,
        ("etcd3gw",), _ETCD, _FOUR, track_record="etcd3gw-leases",
    ),
    Row(
        "etcd3gw-with-enters", "etcd3gw, Lock", "etcd3gw", ("2.1.0", "2.5.0", "2.7.0"),
        "two holders",
        "Lock: `with` enters its block although another client has the lock",
        "One client has the lock. Another one enters `with client.lock(...)` at once.", _ENTERS,
        "`__enter__` calls `acquire`, which tries one time, and ignores its answer.", _RAISE,
        ("etcd3gw",), _ETCD, Runs(6, 6, _NEXT, _LAST),
    ),
    Row(
        "aetcd-with-enters", "aetcd, Lock", "aetcd", ("1.0.0",), "two holders",
        "Lock: `async with` enters its block after 10 s although another client has the lock",
        "One client has the lock. Another one enters `async with client.lock(...)` after 10 s.",
        _ENTERS, _TEN_SECONDS.format("__aenter__"), _RAISE,
        ("aetcd",), _ETCD, Runs(5, 5, _NEXT, _LAST),
    ),
    Row(
        "etcd3-with-enters", "etcd3, Lock", "etcd3", ("0.12.0",), "two holders",
        "Lock: `with` enters its block after 10 s although another client has the lock",
        "One client has the lock. Another one enters `with client.lock(...)` after 10 s.",
        _ENTERS, _TEN_SECONDS.format("__enter__"), _RAISE,
        ("etcd3",), _ETCD, Runs(4, 4, _NEXT, _LAST),
        thread="https://github.com/kragniz/python-etcd3/issues/599",
    ),
    Row(
        "aetcd-leases", "aetcd, Lock", "aetcd", ("1.0.0",), "slow",
        "Lock: every failed attempt leaves a lease in etcd",
        _LEASES, _REVOKED, "Each attempt makes a lease, and forgets it if the key exists.", _REVOKE,
        ("aetcd",), _ETCD, Runs(4, 4, _NEXT, _LAST),
    ),
    Row(
        "dramatiq-late-release", "dramatiq, ConcurrentRateLimiter", "dramatiq",
        ("1.12.3", "1.17.1", "2.2.1"), "two holders",
        "ConcurrentRateLimiter(limit=1): a release after the ttl frees another client's lock",
        "A client stays in its block for longer than the ttl, and another one enters. The first "
        "leaves its block, and a third one enters while the second is in its own.",
        "A release ends the hold of its own client only. The class is documented as a distributed "
        "mutex.",
        "`release` decrements a counter that has no owner.",
        "Store the holders by an id each, and remove the own one. Or choose a ttl that no block "
        "outlasts (it is 15 min by default).",
        ("dramatiq", "redis"), _REDIS, Runs(7, 7, _NEXT, _LAST),
    ),
    Row(
        "walrus-short-ttl", "walrus, Lock", "walrus", ("0.9.3", "0.9.8"), "stuck",
        "Lock: with a ttl below one second a waiter sleeps for ever after the holder's death",
        "A client acquires `lock('job', ttl=500)` and ends. Another one waits for it, and does not "
        "return after the lease.",
        "The waiter is granted the lock when the lease expires.",
        "It waits by BLPOP for `ttl // 1000` seconds, and 0 means without a limit.",
        "Wait for `ttl / 1000`: Redis 6 takes fractions of a second.",
        ("walrus",), _REDIS, Runs(6, 6, _NEXT, _LAST),
    ),
    Row(
        "aiocache-other-process", "aiocache, RedLock", "aiocache", ("0.12.0", "0.12.3"),
        "two holders",
        "RedLock on Redis: a client of another process does not wait for the holder",
        "One process is in its block. A client of another process enters its own at once, although "
        "the lease runs. In one process the client waits.",
        "A client waits for the release or the end of the lease, as its documentation says. (It "
        "also says that the lock is not for strict exclusion.)",
        "It waits for an asyncio.Event of its own process. Without one, KeyError is caught, and "
        "the block is entered.",
        "Ask Redis again until the key or the lease has expired.",
        ("aiocache", "redis"), _REDIS, Runs(6, 6, _NEXT, _LAST),
    ),
    Row(
        "sherlock-expire-none", "sherlock, RedisLock", "sherlock", ("0.4.0", "0.4.1"),
        "two holders",
        "RedisLock(expire=None): acquire() deletes the key that it has set",
        "`expire=None` is documented as a lock that does not expire. `acquire` of two clients, one "
        "after the other, returns True.",
        "The second `acquire` waits or is refused until the first client releases the lock.",
        "The script compares `ARGV[2]`, a string, with the number -1, and so sends EXPIRE with -1, "
        "which deletes a key.",
        "Compare with `tonumber(ARGV[2])`, or use SET with NX and without EX.",
        ("sherlock", "redis"), _REDIS, Runs(6, 6, _NEXT, _LAST),
        thread="https://github.com/py-sherlock/sherlock/pull/37",
    ),
    Row(
        "sherlock-expire-fraction", "sherlock, RedisLock", "sherlock", ("0.4.0", "0.4.1"),
        "stuck",
        "RedisLock(expire=1.5): acquire() raises, and its key stays for ever",
        "`expire` is documented as a float. With a fraction of a second `acquire` raises "
        "ResponseError, and its key stays without a TTL: every later `acquire` is refused.",
        "The lock expires after 1.5 s, or the value is refused before a key is set.",
        "The script sets the key, and then EXPIRE refuses the fraction. Redis keeps the "
        "writes of a script that fails.",
        "Use SET with NX and PX, in milliseconds.",
        ("sherlock", "redis"), _REDIS, Runs(6, 6, _NEXT, _LAST),
    ),
    Row(
        "kubernetes-leader-hangs", "kubernetes, leaderelection", "kubernetes", ("37.0.2",),
        "two holders",
        "leaderelection: a request that hangs leaves two leaders at work",
        "The answer to a request of the leader never arrives. The next candidate leads after the "
        "lease, and `onstopped_leading` of the first is not called.",
        "`onstopped_leading` is called within `renew_deadline`.",
        "The request has no timeout and runs in the loop that has to notice the deadline.",
        "Give each request `_request_timeout`, at most the rest of `renew_deadline`.",
        ("kubernetes",), (), _FOUR,
    ),
    Row(
        "kubernetes-leader-reset", "kubernetes, leaderelection", "kubernetes", ("37.0.2",),
        "two holders",
        "leaderelection: a connection reset ends the loop, and onstopped_leading is not called",
        "The connections of the leader end without an answer. `run()` ends with an exception of "
        "urllib3, the work continues, and the next candidate leads after the lease.",
        "The request is tried again until `renew_deadline`, then `onstopped_leading` is called.",
        "The locks catch ApiException only. urllib3 raises MaxRetryError or ProtocolError.",
        "Catch these as failed attempts, and call `onstopped_leading` in a `finally`.",
        ("kubernetes",), (), _FOUR,
    ),
    Row(
        "kubernetes-aio-cannot-create", "kubernetes.aio, leaderelection", "kubernetes",
        ("37.0.2",), "stuck",
        "aio.leaderelection: no candidate can create the Lease, so none ever leads",
        "Without a Lease (or ConfigMap) of this name, `run()` ends with a ValidationError of "
        "pydantic, and no request is sent. Once the object exists, candidates lead.",
        "The first candidate creates the Lease and leads.",
        "`LeaseLock.create` and `ConfigMapLock.create` pass `pretty=True`, and the generated "
        "client takes a string alone.",
        "Leave `pretty` out, as the other requests of the locks do.",
        ("kubernetes", "aiohttp", "pydantic"), (), Runs(1, 1, _LAST, _LAST),
    ),
    Row(
        "pgbouncer-advisory-lock", "PgBouncer, advisory locks", "pgbouncer", ("1.18",),
        "two holders",
        "Transaction pooling: two clients are granted one session lock of PostgreSQL",
        "Two clients call `pg_try_advisory_lock(42)` through PgBouncer with `pool_mode = "
        "transaction`: both are granted it. When both are gone, the lock is still held.",
        "An error, because a session lock has no meaning without a session of its own.",
        "Both clients run on one server session, and a session may take its own lock again.",
        "Use `pg_try_advisory_xact_lock`, or `pool_mode = session` for these clients.",
        ("psycopg2",), ("initdb", "pgbouncer"), _FOUR, ecosystem="",
    ),
    Row(
        "etcd-paused-leader-revokes", "etcd", "etcd", ("3.4.23", "3.5.16"), "two holders",
        "A leader that was paused revokes leases that its successor has kept alive",
        "The leader is paused for longer than a lease, another member leads, and clients keep their"
        " leases alive there. When the old leader continues, it revokes leases that have expired by"
        " its own clock: their keys are gone, and other clients acquire the locks.",
        "Only the member that leads revokes leases.",
        "An old leader that knows the new term forwards its proposals, also those to revoke. Up to "
        "16 revocations wait for an answer; the rest are proposed after it has stepped down. Pull "
        "request 16822 added a test of the leadership to 3.4 and 3.5; 3.5.16 still revokes.",
        "Test the leadership before each revocation, or do not forward a proposal to revoke.",
        (), _ETCD, Runs(7, 7, _FIRST, _LAST), ecosystem="",
        thread="https://github.com/etcd-io/etcd/issues/15247",
    ),
    Row(
        "sqlalchemy-dlock-reconnect", "sqlalchemy-dlock", "sqlalchemy-dlock", ("0.9.0",), "silent",
        "A lock whose session was lost is still `locked` after the reconnect",
        "The server ends the session, another client acquires the lock, and SQLAlchemy opens the "
        "connection again. `locked` of the first lock is still True.",
        "`locked` is False after its session has ended.",
        "`locked` is an attribute that only `release` clears.",
        "Keep the server's session id (pg_backend_pid) at `acquire`, or listen to the pool's "
        "`invalidate` event, and clear `locked`.",
        ("sqlalchemy", "sqlalchemy_dlock", "psycopg2"), _POSTGRES, _FOUR,
    ),
    Row(
        "django-pglocks-closed", "django-pglocks", "django-pglocks", ("1.0.4",), "two holders",
        "close_old_connections() in a block frees its lock, and the block continues",
        "In a block of `advisory_lock`, `close_old_connections()` closes the session, and Django "
        "opens another one for the next query. Another client is granted the lock. The first "
        "learns of it at the end of its block, by an InterfaceError.",
        "A block keeps its lock, or the next query in it fails.",
        "The lock belongs to the session. With `CONN_MAX_AGE` of 0, the default, each connection "
        "is an old one; Channels closes them at each `database_sync_to_async`. Seen with Django "
        "3.2, 4.2 and 5.2.",
        "Take the lock in a transaction (pg_advisory_xact_lock): Django does not close a "
        "connection within `atomic`.",
        ("django", "django_pglocks", "psycopg2"), _POSTGRES, Runs(5, 5, _NEXT, _LAST),
    ),
    Row(
        "mariadb-get-lock-reconnect", "MariaDB GET_LOCK with PyMySQL", "pymysql", ("1.2.4",),
        "silent",
        "ping() reconnects without an error, and the session's GET_LOCK is lost",
        "The server ends the session, by a KILL or because it was idle for longer than its "
        "`wait_timeout`. Another client acquires the lock, and `ping()` of the first returns as if "
        "nothing had happened.",
        "A caller that depends on its session learns that it is another one.",
        "`reconnect=True` is the default of `ping`; locks belong to the session that ended.",
        "Call `ping(reconnect=False)` while GET_LOCK is held, or compare CONNECTION_ID().",
        ("pymysql",), ("mariadbd",), Runs(7, 7, _FIRST, _LAST),
        thread="https://github.com/dreamwidth/dreamwidth/pull/3549",
    ),
    Row(
        "mariadb-get-lock-failover", "MariaDB GET_LOCK with Connector/J", "mariadb", ("10.11",),
        "two holders",
        "After a failover two clients have the same GET_LOCK, and neither hears of it",
        "The primary is paused, its replica is promoted, and Connector/J, whose URL names both, "
        "takes a second client there: it is granted the lock. The primary continues, and the first "
        "client still has the lock on it. If the primary was killed, the next statement of the "
        "first is answered by the replica, without an error and without the lock.",
        "The second client is refused, or the first hears that its session has ended.",
        "GET_LOCK belongs to a session of one server and is not replicated. With `autoReconnect` "
        "Connector/J 2.7 opens a session on another server for a statement outside a transaction.",
        "Compare @@server_id and CONNECTION_ID() with those of the acquire in each transaction, or "
        "leave `autoReconnect` off; stop the old primary before the promotion (fencing). A row "
        "that is locked in the transaction of the write needs neither.",
        (), ("mariadbd", "java", "javac"), Runs(4, 4, "2026-11-28", _LAST), ecosystem="",
        files=("/usr/share/java/mariadb-java-client.jar",),
    ),
    Row(
        "portalocker-paused-holder", "portalocker, RedisLock", "portalocker",
        ("2.10.1", "3.0.0", "3.2.0", "4.0.0", "4.1.0"),
        "two holders",
        "A paused holder loses its connection, and two clients hold the lock",
        "The holder is paused and the server ends its connection. Another client acquires the "
        "lock. When the first continues, it subscribes again, and its thread is still alive.",
        "The first learns that it has lost the lock.",
        "The lock is a subscription, and redis-py subscribes again after a reconnect.",
        "Do not subscribe again: report the loss of the connection to the holder.",
        ("redis", "portalocker"), _REDIS, _FOUR_SINCE_NEXT, mended="4.2.0",
        thread="https://github.com/wolph/portalocker/issues/137",
    ),
    *npm.ROWS,
    *files_and_jobs.ROWS,
    *servers.ROWS,
)  # fmt: skip

NOT_SHOWN = (
    NotShown("python-redis-lock", "the renewal thread ends in silence",
             "the lock has no attribute or callback that could be asserted without a request"),
    NotShown("Curator", "a release under a lost connection leaves its node",
             "with 5.4.0, ten ways, each time with the session kept: the connection cut at the "
             "delete, with no retry, one or two, and in a namespace; `release` while the state is "
             "SUSPENDED; no answer for 25 s; the server killed before or after it got the delete, "
             "and restarted; the thread interrupted. `release` raised (it waited out the 25 s); "
             "after the reconnect the node was deleted, and another client acquired the lock"),
    NotShown("NATS, JetStream", "revisions of a bucket whose keys expire go back after an election",
             "with 2.10.27 a paused server counted lower afterwards; a script that made it the "
             "leader got lower revisions in two of four runs, and no revision within two minutes "
             "in the others (docs/locks.md)"),
)  # fmt: skip
