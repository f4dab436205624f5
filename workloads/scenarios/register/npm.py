"""The rows of packages of npm."""

from __future__ import annotations

from fencepost.workloads.scenarios.register.row import Row, Runs

_FOUR = Runs(4, 4, "2026-11-27", "2026-11-28")
_NODE = ("node", "redis-server")
_SESAMECARE = "@sesamecare-oss/redlock"

ROWS = (
    Row(
        "redlock-npm-extend-unlocks", "redlock (npm)", "redlock", ("4.2.0",), "two holders",
        "An extension that finds no quorum releases the lock, whose lease still runs",
        "Two of three servers are paused while a holder extends its lock, and `extend` fails. When "
        "they continue, no server has the key, 15 s before the end of the lease: another client "
        "acquires the lock.",
        "A failed extension leaves the lock as it was, and its `expiration` holds.",
        "An extension is an attempt to lock with the same value. A failed attempt calls `unlock`, "
        "which reaches the servers after the requests that they have not answered.",
        "Do not unlock after a failed extension, as 5.0.0-beta.2 does. Until then, stop the work "
        "when `extend` fails.",
        (), _NODE, Runs(5, 5, "2026-11-28", "2026-11-28"), ecosystem="npm",
        npm=("redlock", "ioredis"), mended="5.0.0-beta.2",
        track_record="node-redlock-extend-unlocks",
    ),
    Row(
        "redlock-npm-own-key", "redlock (npm)", "redlock", ("5.0.0-beta.2",), "stuck",
        "A retry of acquire is blocked by the key that its own first attempt has set",
        "The first attempt of `acquire` sets its key on one server of three. Another client then "
        "frees a second one: the key is free on a majority, and every retry is refused.",
        "A retry counts a server that has its own value as one that granted the lock.",
        "The value is the same in all attempts. The script refuses any key that exists, and a "
        "failed attempt deletes nothing.",
        "Refuse only a key with another value, and set the TTL of an own one again.",
        (), _NODE, _FOUR, ecosystem="npm", npm=("redlock", "ioredis"),
        thread="https://github.com/mike-marcacci/node-redlock/issues/299",
    ),
    Row(
        "redlock-npm-validity", "redlock (npm)", "redlock", ("5.0.0-beta.2",), "two holders",
        "acquire returns a lock that has expired",
        "The answers of the server arrive later than the TTL. `acquire` returns a lock whose "
        "`expiration` is in the past, while another client holds it.",
        "`acquire` is refused when no validity is left.",
        "`expiration` is computed after a quorum, and nothing compares it with the clock.",
        "If no validity is left, release the keys and raise, as the Redlock algorithm says.",
        (), _NODE, _FOUR, ecosystem="npm", npm=("redlock", "ioredis"),
        thread="https://github.com/mike-marcacci/node-redlock/issues/296",
    ),
    Row(
        "redlock-sesamecare-own-key", _SESAMECARE, _SESAMECARE, ("1.4.0",), "stuck",
        "A retry of acquire is blocked by the key that its own first attempt has set",
        "The first attempt of `acquire` sets its key on one server of three. Another client then "
        "frees a second one: the key is free on a majority, and every retry is refused.",
        "A retry counts a server that has its own value as one that granted the lock.",
        "The value is the same in all attempts. The script refuses any key that exists, and a "
        "failed attempt deletes nothing.",
        "Refuse only a key with another value, and set the TTL of an own one again.",
        (), _NODE, _FOUR, ecosystem="npm", npm=(_SESAMECARE, "ioredis"),
    ),
    Row(
        "redlock-sesamecare-validity", _SESAMECARE, _SESAMECARE, ("1.4.0",), "two holders",
        "acquire returns a lock that has expired",
        "The answers of the server arrive later than the TTL. `acquire` returns a lock whose "
        "`expiration` is in the past, while another client holds it.",
        "`acquire` is refused when no validity is left.",
        "`expiration` is computed after a quorum, and nothing compares it with the clock.",
        "If no validity is left, release the keys and raise, as the Redlock algorithm says.",
        (), _NODE, _FOUR, ecosystem="npm", npm=(_SESAMECARE, "ioredis"),
    ),
    Row(
        "redis-semaphore-refresh-hangs", "redis-semaphore, Mutex", "redis-semaphore", ("5.8.0",),
        "two holders",
        "Mutex: a refresh without an answer hides the loss from the holder",
        "The answer to a refresh does not arrive. After the TTL another client acquires the lock, "
        "`isAcquired` of the first is still true, and `onLockLost` is not called.",
        "When the TTL has passed since the last refresh, `isAcquired` is false.",
        "The loss is found in the answer to a refresh only, and a refresh has no deadline.",
        "Start a timer for the rest of the TTL at each refresh; when it fires, call `onLockLost`.",
        (), _NODE, _FOUR, ecosystem="npm", npm=("redis-semaphore", "ioredis"),
    ),
    Row(
        "redis-semaphore-validity", "redis-semaphore, Mutex", "redis-semaphore", ("5.8.0",),
        "two holders",
        "Mutex: tryAcquire returns true for a lock that has expired",
        "The answer to SET arrives later than the TTL. `tryAcquire` returns true while another "
        "client holds the lock. The next refresh, after 0.8 TTL, finds the loss.",
        "`tryAcquire` tries again, or returns false, when no validity is left.",
        "The time from the request to the answer is not compared with `lockTimeout`.",
        "Take the time before SET, and refuse a grant that is older than `lockTimeout`.",
        (), _NODE, _FOUR, ecosystem="npm", npm=("redis-semaphore", "ioredis"),
    ),
    Row(
        "bullmq-job-twice", "BullMQ, Worker", "bullmq", ("5.0.0", "5.45.2", "5.66.7", "6.7.0"),
        "two holders",
        "A job whose event loop was blocked does not learn that a second worker runs it",
        "A job blocks the event loop for longer than `lockDuration`. A second worker runs it, and "
        "2 s after the block the `signal` of the first is not aborted. (The documentation "
        "promises that a job runs at least once, not once at a time.)",
        "When a lock cannot be renewed, the signal of its job is aborted.",
        "A renewal that fails emits `lockRenewalFailed` and `error` on the worker, and leaves the "
        "job alone.",
        "Call `cancelJob` for each job whose lock could not be renewed.",
        (), _NODE, _FOUR, ecosystem="npm", npm=("bullmq", "ioredis"),
        thread="https://github.com/taskforcesh/bullmq/issues/3183",
    ),
    Row(
        "redis-lock-npm-late-release", "redis-lock (npm)", "redis-lock", ("1.0.0",), "two holders",
        "A release that arrives late deletes the key of the next client",
        "A client calls its release within its lease, and the request arrives after the lease. By "
        "then another client has the lock: its key is deleted, and a third one acquires it.",
        "A release deletes only the key of its own client.",
        "`release` compares its own clock with the end of the lease, and sends DEL.",
        "Set a random value, and delete the key by a script that compares it.",
        (), _NODE, _FOUR, ecosystem="npm", npm=("redis-lock", "redis"),
        thread="https://github.com/errorception/redis-lock/issues/29",
    ),
)  # fmt: skip
