"""celery-once, QueueOnce: a task that outlasts its timeout frees the lock of the next one.

Run with celery-once 3.0.1, celery 5.7.0, redis-py 8.1.0, Redis 7.0.15, Python 3.11.
Needs: pip install celery-once==3.0.1 celery redis; redis-server in the PATH.
CONTROL=1 ends the first task after the third attempt.
Exit 1 with an AssertionError where the defect shows, 0 where it does not.
"""

import os
import time

from celery import Celery
from celery_once import AlreadyQueued, QueueOnce

from frame.redis_server import redis_server

TIMEOUT_S = 2


def show(port):
    app = Celery("job")
    url = {"url": f"redis://127.0.0.1:{port}/0", "default_timeout": TIMEOUT_S}
    app.conf.ONCE = {"backend": "celery_once.backends.Redis", "settings": url}

    @app.task(base=QueueOnce, name="job")
    def job():
        pass

    def queued():
        """Return whether a task gets the lock, as in apply_async."""
        try:
            job.once_backend.raise_or_lock(job.get_key(), timeout=TIMEOUT_S)
        except AlreadyQueued:
            return False
        return True

    if not queued():
        raise RuntimeError("the lock was not free at the start")
    while not queued():
        time.sleep(0.01)  # until the lock of the first task has expired
    begun = time.monotonic()
    if not os.environ.get("CONTROL"):
        job.after_return("SUCCESS", None, "first", [], {}, None)  # as the worker does at its end
    both, in_time = queued(), time.monotonic() < begun + TIMEOUT_S
    assert not (both and in_time), (
        "a third task was queued while the second one had the lock, within its timeout"
    )


if __name__ == "__main__":
    with redis_server() as server:
        show(server.port)
