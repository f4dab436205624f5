"""tooz, Redis driver: `acquired` stays True when another client has the lock.

Run with tooz 9.1.0, redis-py 8.1.0 and Redis 7.0.15, Python 3.11.
Needs: pip install tooz==9.1.0 redis==8.1.0; redis-server in the PATH.
Exit 1 with an AssertionError where the defect shows, 0 where it does not.
"""

import socket
import subprocess
import tempfile
import time

from tooz import coordination


def show(port):
    url = f"redis://127.0.0.1:{port}?lock_timeout=1"
    first = coordination.get_coordinator(url, b"first")
    second = coordination.get_coordinator(url, b"second")
    first.start()
    second.start()
    mine, other = first.get_lock(b"job"), second.get_lock(b"job")
    if not mine.acquire(blocking=False):
        raise RuntimeError("the lock was not free at the start")
    # No heartbeat for longer than lock_timeout: a paused process, a blocked event loop.
    deadline = time.monotonic() + 20
    while not other.acquire(blocking=False):
        if time.monotonic() > deadline:
            raise RuntimeError("the lock did not expire")
        time.sleep(0.1)
    both = mine.acquired and other.acquired
    assert not both, "the second client holds the lock, and `acquired` of the first is still True"


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
