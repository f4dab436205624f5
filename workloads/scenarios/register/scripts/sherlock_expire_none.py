"""sherlock, RedisLock(expire=None): acquire() deletes the key that it has set.

Run with sherlock 0.4.1, redis-py 8.1.0, Redis 7.0.15, Python 3.11.
Needs: pip install sherlock==0.4.1 redis; redis-server in the PATH.
CONTROL=1 uses expire=600.
Exit 1 with an AssertionError where the defect shows, 0 where it does not.
"""

import os
import socket
import subprocess
import tempfile
import time

import redis
from sherlock import RedisLock

EXPIRE = 600 if os.environ.get("CONTROL") else None


def show(port):
    client = redis.Redis(port=port)
    first, second = (RedisLock("job", client=client, expire=EXPIRE) for _ in range(2))
    if not first.acquire(blocking=False):
        raise RuntimeError("the lock was not free at the start")
    both = second.acquire(blocking=False)
    assert not both, "the first client has the lock, without an expiry, and so has the second one"


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def start(folder):
    port = free_port()
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
        try:
            show(port)
        finally:
            server.kill()
            server.wait()


if __name__ == "__main__":
    main()
