"""tooz, etcd3gw driver: every failed attempt leaves a lease in etcd until its TTL has passed.

Run with tooz 9.1.0, etcd3gw 2.7.0, etcd 3.4.23, Python 3.11.
Needs: pip install tooz==9.1.0 etcd3gw==2.7.0; Debian's etcd-server.
Exit 1 with an AssertionError where the defect shows, 0 where it does not.
"""

import etcd3gw
from tooz import coordination

from frame.etcd_server import etcd_server


def show(port):
    url = f"etcd3+http://127.0.0.1:{port}?lock_timeout=600&timeout=10&api_version=v3"
    first = coordination.get_coordinator(url, b"first")
    second = coordination.get_coordinator(url, b"second")
    first.start()
    second.start()
    client = etcd3gw.client(host="127.0.0.1", port=port, api_path="/v3/", timeout=10)

    def leases():
        return len(client.post(client.get_url("/lease/leases"), json={}).get("leases", []))

    if not first.get_lock(b"job").acquire(blocking=False):
        raise RuntimeError("the lock was not free at the start")
    before, waiter = leases(), second.get_lock(b"job")
    for _ in range(20):
        if waiter.acquire(blocking=False):
            raise RuntimeError("the lock was granted twice")
    left = leases() - before
    assert left <= 1, f"20 attempts that failed, all ended: {left} more leases in etcd"


if __name__ == "__main__":
    with etcd_server() as server:
        show(server.port)
