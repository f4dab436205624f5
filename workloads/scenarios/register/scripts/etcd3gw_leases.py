"""etcd3gw, Lock: every failed attempt leaves a lease in etcd until its TTL has passed.

Run with etcd3gw 2.7.0, etcd 3.4.23, Python 3.11.
Needs: pip install etcd3gw==2.7.0; Debian's etcd-server.
Exit 1 with an AssertionError where the defect shows, 0 where it does not.
"""

import etcd3gw

from frame.etcd_server import etcd_server


def leases(client):
    return len(client.post(client.get_url("/lease/leases"), json={}).get("leases", []))


def show(port):
    client = etcd3gw.client(host="127.0.0.1", port=port, api_path="/v3/", timeout=10)
    if not client.lock("job", ttl=600).acquire():
        raise RuntimeError("the lock was not free at the start")
    for _ in range(20):
        if client.lock("job", ttl=600).acquire():
            raise RuntimeError("the lock was granted twice")
    left = leases(client)
    assert left <= 2, f"one hold and 20 attempts that failed, all ended: {left} leases in etcd"


if __name__ == "__main__":
    with etcd_server() as server:
        show(server.port)
