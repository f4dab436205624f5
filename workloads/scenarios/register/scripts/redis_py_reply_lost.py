"""redis-py, Lock: if the answer to SET is lost, acquire returns False and the lock is stuck.

Run with redis-py 6.0.0 to 8.1.0 and Redis 7.0.15, Python 3.11. 5.3.1 raises.
Needs: pip install redis==8.1.0; redis-server in the PATH.
Exit 1 with an AssertionError where the defect shows, 0 where it does not.
"""

import socket
import subprocess
import tempfile
import threading
import time

import redis


def lose_an_answer(port, marker):
    """A proxy that cuts the connection instead of the answer to the first request with `marker`."""
    lost, asked = threading.Event(), threading.Event()
    listener = socket.create_server(("127.0.0.1", 0))

    def pump(source, sink, requests):
        try:
            while data := source.recv(65536):
                if requests and marker in data:
                    asked.set()
                if not requests and asked.is_set() and not lost.is_set():
                    lost.set()
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
    client, direct = redis.Redis(port=lose_an_answer(port, b"NX")), redis.Redis(port=port)
    try:
        acquired = client.lock("job").acquire(blocking=False)
    except redis.ConnectionError:
        return  # redis-py before 6 does not try again: the caller knows that the outcome is unknown
    left = direct.get("job")
    assert acquired or not left, (
        f"acquire() returned {acquired}, but its own key {left!r} is on the server, with TTL "
        f"{direct.ttl('job')} (-1: for ever): no client holds the lock, and none can acquire it"
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
