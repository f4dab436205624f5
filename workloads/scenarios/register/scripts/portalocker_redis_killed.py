"""portalocker, RedisLock: the connection of a holder is killed, and two clients hold the lock.

Run with portalocker 3.2.0, redis-py 8.1.0 and Redis 7.0.15, Python 3.11.
Needs: pip install portalocker==3.2.0 redis==8.1.0; redis-server in the PATH.
Exit 1 with an AssertionError where the defect shows, 0 where it does not.
"""

import socket
import subprocess
import tempfile
import threading
import time

import redis
from portalocker import RedisLock

COUNT = 1


def show(ports):
    direct = redis.Redis(port=ports[0])
    reported = []
    threading.excepthook = lambda event: reported.append(repr(event.exc_value))
    first, second = (RedisLock("job", redis.Redis(port=ports[0])) for _ in range(2))
    first.acquire()
    direct.client_kill_filter(_type="pubsub")
    second.acquire(timeout=5)
    time.sleep(1)
    alive = first.thread is not None and first.thread.is_alive()
    told = reported or not first.pubsub or not alive
    try:
        assert told, (
            "both clients hold the lock: the first subscribed again after its connection was "
            f"killed, and no call reports it ({direct.pubsub_numsub('job')[0][1]} subscribers)"
        )
    finally:
        for one in (first, second):
            one.release()


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def start(folder):
    port = free_port()
    command = ["redis-server", "--port", str(port), "--save", "", "--dir", folder]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    for _ in range(200):
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return server, port
        except OSError:
            time.sleep(0.05)
    server.kill()
    raise RuntimeError("redis-server did not start")


def main():
    with tempfile.TemporaryDirectory() as folder:
        servers, ports = [], []
        try:
            for _ in range(COUNT):
                server, port = start(folder)
                servers.append(server)
                ports.append(port)
            show(ports)
        finally:
            for server in servers:
                server.kill()
                server.wait()


if __name__ == "__main__":
    main()
