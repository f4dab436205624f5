"""celery-redbeat: a job that is due once is sent twice, because nothing checks the lock again.

Run with celery-redbeat 2.4.2, celery 5.7.0, redis-py 8.1.0 and Redis 7.0.15, Python 3.11.
Needs: pip install celery-redbeat==2.4.2 celery==5.7.0 redis==8.1.0 packaging; redis-server in
the PATH. CONTROL=1 delays the first scheduler for less than the timeout of its lock.
Exit 1 with an AssertionError where the defect shows, 0 where it does not.
"""

import os
import sys
import tempfile
import threading
import time
from datetime import UTC, datetime, timedelta

import celery
import redis
from redbeat import RedBeatSchedulerEntry
from redbeat.schedules import rrule

from frame.processes import running, wait_for
from frame.proxy import proxy
from frame.redis_server import redis_server

LOCK_S = 2
DELAY_S = 0.5 if os.environ.get("CONTROL") else 4
DUE_S = 8
BEAT = """
import celery, sys
broker, schedule = sys.argv[1:3]
app = celery.Celery("job", broker=broker)
app.conf.update(
    redbeat_redis_url=schedule, redbeat_lock_timeout=float(sys.argv[3]), beat_max_loop_interval=1
)
app.Beat(scheduler="redbeat.RedBeatScheduler", loglevel="WARNING", pidfile=None).run()
"""


def beat(folder, broker, schedule):
    urls = [f"redis://127.0.0.1:{port}/0" for port in (broker, schedule)]
    return running([sys.executable, "-c", BEAT, *urls, str(LOCK_S)], cwd=folder)


def show(folder, port):
    direct, url = redis.Redis(port=port), f"redis://127.0.0.1:{port}/0"
    delayed = threading.Event()

    def request(data):
        if b"redbeat:once" in data and b"ZADD" in data and not delayed.is_set():
            delayed.set()  # the scheduler reserves the job
            time.sleep(DELAY_S)

    with beat(folder, port, proxy(port, request)):
        wait_for(lambda: direct.exists("redbeat::lock"), "the scheduler does not start")
        with beat(folder, port, port):
            app = celery.Celery("job", broker=url)
            app.conf.redbeat_redis_url = url
            due = datetime.now(UTC) + timedelta(seconds=DUE_S)
            once = rrule("SECONDLY", dtstart=due, count=1)
            RedBeatSchedulerEntry("once", "job", once, app=app).save()
            wait_for(lambda: direct.llen("celery"), "no scheduler sends the job")
            time.sleep(DELAY_S + 2)
            sent = direct.llen("celery")
    assert sent == 1, (
        f"a job with one due time was sent {sent} times: the first scheduler waited {DELAY_S} s "
        f"for the server, its lock of {LOCK_S} s passed to the second, and then it sent the job"
    )


if __name__ == "__main__":
    with redis_server() as server, tempfile.TemporaryDirectory() as folder:
        show(folder, server.port)
