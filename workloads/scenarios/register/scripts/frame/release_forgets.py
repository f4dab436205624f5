"""redis-py and its forks: release() meets a network error."""

import threading

from frame.proxy import proxy
from frame.redis_server import redis_server


def show_release(library, client_type):
    cut = threading.Event()

    def request(data):
        if b"EVALSHA" in data and not cut.is_set():
            cut.set()
            raise ConnectionError("cut")

    with redis_server() as server:
        direct = client_type(port=server.port)
        client = client_type(port=proxy(server.port, request), retry=None, retry_on_error=[])
        lock = client.lock("job")
        if not lock.acquire(blocking=False):
            raise RuntimeError("the lock was not free at the start")
        try:
            lock.release()
            raise RuntimeError("the release did not meet the cut connection")
        except library.ConnectionError:
            pass
        try:
            lock.release()  # the connection works again
            said = "returned"
        except library.exceptions.LockError as error:
            said = f"raised {type(error).__name__}: {error}"
        left, ttl_s = direct.exists("job"), direct.ttl("job")
        assert not left, (
            f"the second release() {said}, and the key is still there with TTL {ttl_s} (-1: for ever): "
            "its owner cannot release the lock"
        )
