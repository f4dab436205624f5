"""portalocker, RedisLock: a paused holder loses its connection, and two hold the lock.

Run with portalocker 2.10.1 to 4.1.0, redis-py 8.1.0 and Redis 7.0.15, Python 3.11.
Needs: pip install portalocker==4.1.0 redis==8.1.0; redis-server in the PATH.
Exit 1 with an AssertionError where the defect shows, 0 where it does not.
"""

import signal
import subprocess
import sys
import time

import redis
from portalocker import RedisLock

from frame.redis_server import redis_server

HOLDER = """
import redis, sys, threading
from portalocker import RedisLock
lock = RedisLock("job", redis.Redis(port=int(sys.argv[1])))
lock.acquire()
print("acquired", flush=True)
sys.stdin.readline()
print(bool(lock.thread and lock.thread.is_alive() and lock.pubsub), flush=True)
"""


def show(port):
    command = [sys.executable, "-c", HOLDER, str(port)]
    holder = subprocess.Popen(command, stdin=-1, stdout=-1, text=True)
    direct = redis.Redis(port=port)
    second = RedisLock("job", redis.Redis(port=port))
    try:
        if holder.stdout.readline() != "acquired\n":
            raise RuntimeError("the first client did not acquire the lock")
        holder.send_signal(signal.SIGSTOP)
        direct.client_kill_filter(_type="pubsub")
        second.acquire(timeout=5)
        holder.send_signal(signal.SIGCONT)
        time.sleep(2)
        try:
            holder.stdin.write("\n")
            holder.stdin.flush()
        except BrokenPipeError:
            pass  # the loss ended the holder
        believes = holder.stdout.readline() == "True\n"
        subscribers = direct.pubsub_numsub("job")[0][1]
    finally:
        second.release()
        holder.kill()
        holder.wait()
    assert not believes or subscribers < 2, (
        f"{subscribers} clients hold the lock: after its pause the first subscribed again, and "
        "nothing reports that the second has acquired the lock meanwhile"
    )


if __name__ == "__main__":
    with redis_server() as server:
        show(server.port)
