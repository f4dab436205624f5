"""redis-py, Lock: after a network error in release() its owner cannot release the lock.

Run with redis-py 8.1.0 and Redis 7.0.15, Python 3.11.
Needs: pip install redis==8.1.0; redis-server in the PATH.
Exit 1 with an AssertionError where the defect shows, 0 where it does not.
"""

import socket
import subprocess
import tempfile
import threading
import time

import redis


def cut_once(port, marker):
    """A proxy that cuts the connection at the first request that holds `marker`."""
    cut = threading.Event()
    listener = socket.create_server(("127.0.0.1", 0))

    def pump(source, sink, requests):
        try:
            while data := source.recv(65536):
                if requests and marker in data and not cut.is_set():
                    cut.set()
                    break
                sink.sendall(data)
        except OSError:
            pass
        for end in (source, sink):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def serve():
        while True:
            client, _ = listener.accept()
            server = socket.create_connection(("127.0.0.1", port))
            for job in ((client, server, True), (server, client, False)):
                threading.Thread(target=pump, args=job, daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()
    return listener.getsockname()[1]


def show(port):
    direct = redis.Redis(port=port)
    client = redis.Redis(port=cut_once(port, b"EVALSHA"), retry=None, retry_on_error=[])
    lock = client.lock("job")
    if not lock.acquire(blocking=False):
        raise RuntimeError("the lock was not free at the start")
    try:
        lock.release()
        raise RuntimeError("the release did not meet the cut connection")
    except redis.ConnectionError:
        pass
    try:
        lock.release()  # the connection works again
        said = "returned"
    except redis.exceptions.LockError as error:
        said = f"raised {type(error).__name__}: {error}"
    left, ttl_s = direct.exists("job"), direct.ttl("job")
    assert not left, (
        f"the second release() {said}, and the key is still there with TTL {ttl_s} (-1: for ever): "
        "its owner cannot release the lock"
    )


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
