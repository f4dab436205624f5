"""RQ, scheduler: a scheduled job is enqueued twice, because nothing checks the lock again.

Run with rq 3.0.0, redis-py 8.1.0 and Redis 7.0.15, Python 3.11. It takes 75 s.
Needs: pip install rq==3.0.0 redis==8.1.0; redis-server in the PATH.
CONTROL=1 pauses the first scheduler for less than the time of its lock.
Exit 1 with an AssertionError where the defect shows, 0 where it does not.
"""

import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from datetime import timedelta

import redis
from rq import Queue

LOCK_S = 61  # the interval of the scheduler and 60 s
PAUSE_S = 3 if os.environ.get("CONTROL") else LOCK_S + 4
SCHEDULER = """
import redis, sys
from rq.scheduler import RQScheduler
RQScheduler(["default"], connection=redis.Redis(port=int(sys.argv[1])), interval=1).work()
"""


def forward(source, target, stopped):
    """Forward until an end; at the first job that is due, stop the scheduler that reads it."""
    try:
        while data := source.recv(65536):
            if stopped and b"HGETALL" in data and b"rq:job:" in data:
                stopped.pop().send_signal(signal.SIGSTOP)
            target.sendall(data)
    except OSError:
        pass
    target.close()


def proxy(port, stopped):
    listener = socket.create_server(("127.0.0.1", 0))

    def serve():
        while True:
            client = listener.accept()[0]
            server = socket.create_connection(("127.0.0.1", port))
            for pair in ((client, server, stopped), (server, client, None)):
                threading.Thread(target=forward, args=pair, daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()
    return listener.getsockname()[1]


def scheduler(folder, port):
    command = [sys.executable, "-c", SCHEDULER, str(port)]
    return subprocess.Popen(
        command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


def wait_for(condition, limit_s=60):
    end = time.monotonic() + limit_s
    while not (found := condition()):
        if time.monotonic() > end:
            raise RuntimeError("the schedulers did not start, or read no job")
        time.sleep(0.05)
    return found


def show(folder, port, processes):
    direct, stopped = redis.Redis(port=port), []
    queue = Queue("default", connection=direct)
    first = scheduler(folder, proxy(port, stopped))
    processes.append(first)
    wait_for(lambda: direct.exists("rq:scheduler-lock:default"))
    stopped.append(first)
    queue.enqueue_in(timedelta(seconds=2), print, "once")
    wait_for(lambda: not stopped)
    time.sleep(PAUSE_S)
    processes.append(scheduler(folder, port))
    time.sleep(5)  # it acquires the lock if that is free, and enqueues due jobs
    first.send_signal(signal.SIGCONT)
    wait_for(queue.get_job_ids)
    time.sleep(3)
    enqueued = queue.get_job_ids()
    assert len(enqueued) == 1, (
        f"a job that is scheduled once is {len(enqueued)} times in its queue: the first scheduler "
        f"was paused for {PAUSE_S} s, its lock of {LOCK_S} s passed to the second, and then it "
        "enqueued the job"
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
