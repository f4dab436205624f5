"""RQ, scheduler: a scheduled job is enqueued twice, because nothing checks the lock again.

Run with rq 3.0.0, redis-py 8.1.0 and Redis 7.0.15, Python 3.11. It takes 75 s.
Needs: pip install rq==3.0.0 redis==8.1.0; redis-server in the PATH.
CONTROL=1 pauses the first scheduler for less than the time of its lock.
Exit 1 with an AssertionError where the defect shows, 0 where it does not.
"""

import os
import signal
import sys
import threading
import time
from datetime import timedelta

import redis
from rq import Queue

from frame.processes import running, wait_for
from frame.proxy import proxy
from frame.redis_server import redis_server

LOCK_S = 61  # the interval of the scheduler and 60 s
PAUSE_S = 3 if os.environ.get("CONTROL") else LOCK_S + 4
SCHEDULER = """
import redis, sys
from rq.scheduler import RQScheduler
RQScheduler(["default"], connection=redis.Redis(port=int(sys.argv[1])), interval=1).work()
"""


def scheduler(port):
    return running([sys.executable, "-c", SCHEDULER, str(port)])


def show(port):
    direct = redis.Redis(port=port)
    queue = Queue("default", connection=direct)
    read = threading.Event()

    def request(data):
        if b"HGETALL" in data and b"rq:job:" in data and not read.is_set():
            first.process.send_signal(signal.SIGSTOP)
            read.set()

    with scheduler(proxy(port, request)) as first:
        wait_for(lambda: direct.exists("rq:scheduler-lock:default"), "the scheduler does not start")
        queue.enqueue_in(timedelta(seconds=2), print, "once")
        wait_for(read.is_set, "the scheduler reads no job")
        time.sleep(PAUSE_S)
        with scheduler(port):
            time.sleep(5)  # it acquires the lock if that is free, and enqueues due jobs
            first.process.send_signal(signal.SIGCONT)
            wait_for(queue.get_job_ids, "no scheduler enqueues the job")
            time.sleep(3)
            enqueued = queue.get_job_ids()
    assert len(enqueued) == 1, (
        f"a job that is scheduled once is {len(enqueued)} times in its queue: the first scheduler "
        f"was paused for {PAUSE_S} s, its lock of {LOCK_S} s passed to the second, and then it "
        "enqueued the job"
    )


if __name__ == "__main__":
    with redis_server() as server:
        show(server.port)
