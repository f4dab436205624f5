"""The rows of locks in files and objects, and of schedulers of jobs that run under a lock."""

from __future__ import annotations

from fencepost.workloads.scenarios.register.row import Row, Runs

_FOUR = Runs(4, 4, "2026-11-27", "2026-11-28")
_FIVE = Runs(5, 5, "2026-11-27", "2026-11-28")
_REDIS = ("redis-server",)
_FENCE = "Let the write that takes the job succeed only if the scheduler still owns its lock."
_OWN_END = "The end of a task frees only the lock that this task has."

ROWS = (
    Row(
        "filelock-soft-rw-paused", "filelock, SoftReadWriteLock", "filelock",
        ("3.28.0", "3.29.7", "3.32.7", "4.0.0", "4.1.2", "4.2.0"), "two holders",
        "SoftReadWriteLock: a writer that was evicted during a pause still believes it holds",
        "A writer is paused for longer than `stale_threshold`, and another evicts it. When the "
        "first continues, its `acquire_write()` counts one more level of its hold.",
        "The first learns that it has lost the lock.",
        "The heartbeat finds another token in the marker and ends; the hold is not touched.",
        "Mark the hold as lost, and refuse it from then on, as 4.2.1 does (`on_compromise`).",
        ("filelock",), (), _FOUR, mended="4.2.1",
        thread="https://github.com/tox-dev/filelock/pull/738",
    ),
    Row(
        "filelock-soft-rw-clock", "filelock, SoftReadWriteLock", "filelock",
        ("3.28.0", "3.29.7", "3.32.7"), "two holders",
        "SoftReadWriteLock: a client whose clock is ahead evicts a writer that is alive",
        "A writer refreshes its marker in time. A client whose clock is ahead by more than "
        "`stale_threshold` evicts it, and both hold the lock.",
        "A holder that refreshes its marker keeps the lock, whatever the clocks of others show.",
        "The age of a marker is the client's wall clock minus the modification time of the file.",
        "Measure on the client's monotonic clock for how long the marker has not changed.",
        ("filelock",), (), _FOUR, mended="4.0.0",
    ),
    Row(
        "moto-if-none-match", "moto, S3 server", "moto", ("5.0.14",), "two holders",
        "put_object ignores If-None-Match, so every client is granted a lock by it",
        "Two clients call `put_object` with `IfNoneMatch=\"*\"` for one key: both succeed, and the "
        "object is that of the second. With S3_URL the script asks another service.",
        "The second is refused with 412, PreconditionFailed.",
        "The header is not read.",
        "Refuse the write if the object exists, as 5.0.15 does.",
        ("moto", "boto3"), (), _FOUR, mended="5.0.15",
        thread="https://github.com/getmoto/moto/issues/8091",
    ),
    Row(
        "celery-redbeat-sent-twice", "celery-redbeat", "celery-redbeat", ("2.4.2",), "two holders",
        "A job that is due once is sent twice",
        "A scheduler reads a job that is due, and its next write waits for longer than "
        "`redbeat_lock_timeout`. Another acquires the lock and sends the job; then so does the "
        "first.",
        "A scheduler whose lock has passed to another sends nothing.",
        "The lock is extended at the start of a tick. Neither the write that reserves the job nor "
        "the sending depends on it.",
        _FENCE, ("celery", "redbeat", "redis"), _REDIS, _FOUR,
        thread="https://github.com/sibson/redbeat/issues/129",
    ),
    Row(
        "rq-scheduler-enqueued-twice", "RQ, scheduler", "rq", ("3.0.0",), "two holders",
        "A job that is scheduled once is enqueued twice",
        "A scheduler reads a job that is due, and is paused for longer than its lock (61 s). "
        "Another acquires the lock and enqueues the job; then so does the first.",
        "A scheduler whose lock has passed to another enqueues nothing.",
        "The owner is checked in the heartbeat, before the jobs are read. The write that enqueues "
        "them does not depend on it.",
        _FENCE, ("rq", "redis"), _REDIS, _FOUR, thread="https://github.com/rq/rq/issues/2338",
    ),
    Row(
        "celery-once-late-end", "celery-once, QueueOnce", "celery-once", ("3.0.1",), "two holders",
        "A task that outlasts its timeout frees the lock of the next one",
        "The first task is late, its lock expires, and a second one is queued. The first ends, and "
        "a third one is queued while the second has the lock.", _OWN_END,
        "`clear_lock` deletes the key without a comparison of its owner.",
        "Keep the token of redis-py's Lock, and release by it; or choose a timeout that no task "
        "outlasts.",
        ("celery_once", "celery", "redis"), _REDIS, _FIVE,
    ),
    Row(
        "celery-singleton-late-end", "celery-singleton, Singleton", "celery-singleton",
        ("0.3.1",), "two holders",
        "A task that outlasts lock_expiry frees the lock of the next one",
        "The first task is late, its lock expires, and a second one is queued. The first ends, and "
        "a third one is queued while the second has the lock.", _OWN_END,
        "The key has the id of its task, and `unlock` deletes it without a comparison.",
        "Delete the key by a script that compares the id of the task.",
        ("celery_singleton", "celery", "redis"), _REDIS, _FIVE,
    ),
)  # fmt: skip
