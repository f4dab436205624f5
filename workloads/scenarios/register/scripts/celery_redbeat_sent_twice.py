"""celery-redbeat: a job that is due once is sent twice, because nothing checks the lock again.

Run with celery-redbeat 2.4.2, celery 5.7.0, redis-py 8.1.0 and Redis 7.0.15, Python 3.11.
Needs: pip install celery-redbeat==2.4.2 celery==5.7.0 redis==8.1.0 packaging; redis-server in
the PATH. CONTROL=1 delays the first scheduler for less than the timeout of its lock.
Exit 1 with an AssertionError where the defect shows, 0 where it does not.
"""

import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from datetime import UTC, datetime, timedelta, timezone

import celery
import redis
from redbeat import RedBeatSchedulerEntry
from redbeat.schedules import rrule

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


def forward(source, target, delayed):
    """Forward until an end; if `delayed`, hold back the first write that reserves the job."""
    try:
        while data := source.recv(65536):
            if delayed and b"redbeat:once" in data and b"ZADD" in data:
                delayed.clear()
                time.sleep(DELAY_S)
            target.sendall(data)
    except OSError:
        pass
    target.close()


def proxy(port):
    """Return a port that leads to `port`, with a delay of one write."""
    listener, delayed = socket.create_server(("127.0.0.1", 0)), [True]

    def serve():
        while True:
            client = listener.accept()[0]
            server = socket.create_connection(("127.0.0.1", port))
            for pair in ((client, server, delayed), (server, client, None)):
                threading.Thread(target=forward, args=pair, daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()
    return listener.getsockname()[1]


def beat(folder, broker, schedule):
    urls = [f"redis://127.0.0.1:{port}/0" for port in (broker, schedule)]
    return subprocess.Popen([sys.executable, "-c", BEAT, *urls, str(LOCK_S)], cwd=folder,
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip


def wait_for(condition, limit_s=60):
    end = time.monotonic() + limit_s
    while not (found := condition()):
        if time.monotonic() > end:
            raise RuntimeError("the schedulers did not start, or sent nothing")
        time.sleep(0.05)
    return found


def show(folder, port, beats):
    direct, url = redis.Redis(port=port), f"redis://127.0.0.1:{port}/0"
    beats.append(beat(folder, port, proxy(port)))
    wait_for(lambda: direct.exists("redbeat::lock"))
    beats.append(beat(folder, port, port))
    app = celery.Celery("job", broker=url)
    app.conf.redbeat_redis_url = url
    due = datetime.now(UTC) + timedelta(seconds=DUE_S)
    RedBeatSchedulerEntry("once", "job", rrule("SECONDLY", dtstart=due, count=1), app=app).save()
    wait_for(lambda: direct.llen("celery"))
    time.sleep(DELAY_S + 2)
    sent = direct.llen("celery")
    assert sent == 1, (
        f"a job with one due time was sent {sent} times: the first scheduler waited {DELAY_S} s "
        f"for the server, its lock of {LOCK_S} s passed to the second, and then it sent the job"
    )


def start(folder):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    command = ["redis-server", "--port", str(port), "--save", "", "--dir", folder]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    for _ in range(1200):
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return server, port
        except OSError:
            time.sleep(0.05)
    server.kill()
    raise RuntimeError("redis-server did not start")


def main():
    with tempfile.TemporaryDirectory() as folder:
        server, port = start(folder)
        processes = [server]
        try:
            show(folder, port, processes)
        finally:
            for process in processes:
                process.kill()
                process.wait()


if __name__ == "__main__":
    main()
