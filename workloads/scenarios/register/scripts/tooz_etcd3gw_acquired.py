"""tooz, etcd3gw driver: `acquired` stays True when another client has the lock.

Run with tooz 9.1.0, etcd3gw 2.7.0, etcd 3.4.23, Python 3.11.
Needs: pip install tooz==9.1.0 etcd3gw==2.7.0; Debian's etcd-server.
Exit 1 with an AssertionError where the defect shows, 0 where it does not.
"""

import socket
import subprocess
import tempfile
import time

from tooz import coordination


def show(port):
    url = f"etcd3+http://127.0.0.1:{port}?lock_timeout=2&timeout=10&api_version=v3"
    first = coordination.get_coordinator(url, b"first")
    second = coordination.get_coordinator(url, b"second")
    first.start()
    second.start()
    mine, other = first.get_lock(b"job"), second.get_lock(b"job")
    if not mine.acquire(blocking=False):
        raise RuntimeError("the lock was not free at the start")
    # No heartbeat for longer than lock_timeout: a paused process, a blocked event loop.
    deadline = time.monotonic() + 60
    while not other.acquire(blocking=False):
        if time.monotonic() > deadline:
            raise RuntimeError("the lease did not expire")
        time.sleep(0.1)
    beat = mine.heartbeat()
    both = mine.acquired and other.acquired
    assert not both, (
        "the second client holds the lock; of the first, `acquired` is still True, "
        f"and heartbeat() returned {beat}"
    )


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def answers(port, server):
    for _ in range(1200):
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return
        except OSError:
            if server.poll() is not None:
                break
            time.sleep(0.05)
    raise RuntimeError("the server did not start")


def main():
    with tempfile.TemporaryDirectory() as folder:
        port, peers = free_port(), free_port()
        here, there = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{peers}"
        server = subprocess.Popen(
            [
                "etcd",
                "--data-dir",
                folder,
                "--listen-client-urls",
                here,
                "--advertise-client-urls",
                here,
                "--listen-peer-urls",
                there,
                "--initial-advertise-peer-urls",
                there,
                "--initial-cluster",
                f"default={there}",
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            answers(port, server)
            show(port)
        finally:
            server.kill()
            server.wait()


if __name__ == "__main__":
    main()
