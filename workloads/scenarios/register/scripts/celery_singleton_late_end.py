"""celery-singleton, Singleton: a task that outlasts lock_expiry frees the lock of the next one.

Run with celery-singleton 0.3.1, celery 5.7.0, redis-py 8.1.0, Redis 7.0.15, Python 3.11.
Needs: pip install celery-singleton==0.3.1 celery redis; redis-server in the PATH.
CONTROL=1 ends the first task after the third attempt.
Exit 1 with an AssertionError where the defect shows, 0 where it does not.
"""

import os
import time

from celery import Celery
from celery_singleton import Singleton

from frame.redis_server import redis_server

EXPIRY_S = 2


def show(port):
    app = Celery("job", backend=f"redis://127.0.0.1:{port}/0")

    @app.task(base=Singleton, name="job", lock_expiry=EXPIRY_S)
    def job():
        pass

    lock = job.generate_lock(job.name, [], {})
    if not job.aquire_lock(lock, "first"):
        raise RuntimeError("the lock was not free at the start")
    while not job.aquire_lock(lock, "second"):
        time.sleep(0.01)  # until the first lock has expired
    begun = time.monotonic()
    if not os.environ.get("CONTROL"):
        job.on_success(None, "first", [], {})  # as the worker does at its end
    both, in_time = job.aquire_lock(lock, "third"), time.monotonic() < begun + EXPIRY_S
    assert not (both and in_time), (
        "a third task was queued while the second one had the lock, within its expiry"
    )


if __name__ == "__main__":
    with redis_server() as server:
        show(server.port)
