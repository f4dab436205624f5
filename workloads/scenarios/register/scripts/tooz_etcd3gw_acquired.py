"""tooz, etcd3gw driver: `acquired` stays True when another client has the lock.

Run with tooz 9.1.0, etcd3gw 2.7.0, etcd 3.4.23, Python 3.11.
Needs: pip install tooz==9.1.0 etcd3gw==2.7.0; Debian's etcd-server.
Exit 1 with an AssertionError where the defect shows, 0 where it does not.
"""

from tooz import coordination

from frame.etcd_server import etcd_server
from frame.processes import wait_for


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
    wait_for(lambda: other.acquire(blocking=False), "the lease does not expire")
    beat = mine.heartbeat()
    both = mine.acquired and other.acquired
    assert not both, (
        "the second client holds the lock; of the first, `acquired` is still True, "
        f"and heartbeat() returned {beat}"
    )


if __name__ == "__main__":
    with etcd_server() as server:
        show(server.port)
