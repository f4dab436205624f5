"""redis-py, Lock(timeout=0): reacquire() deletes the lock and returns True.

Run with redis-py 8.1.0 and Redis 7.0.15, Python 3.11.
Needs: pip install redis==8.1.0; redis-server in the PATH.
Exit 1 with an AssertionError where the defect shows, 0 where it does not.
"""

import socket
import subprocess
import tempfile
import time

import redis


def show(port):
    client = redis.Redis(port=port)
    first, second = client.lock("job", timeout=0), client.lock("job", timeout=0)
    if not first.acquire(blocking=False):
        raise RuntimeError("the lock was not free at the start")
    try:
        said = f"returned {first.reacquire()}"
    except redis.exceptions.LockError as error:
        said = f"raised {error}"
    stolen = second.acquire(blocking=False)
    assert not stolen, f"reacquire() {said}, and another client acquired the lock"


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
