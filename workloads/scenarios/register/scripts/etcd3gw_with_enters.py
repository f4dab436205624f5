"""etcd3gw, Lock: `with` enters its block although another client has the lock.

Run with etcd3gw 2.7.0, etcd 3.4.23, Python 3.11.
Needs: pip install etcd3gw==2.7.0; Debian's etcd-server.
CONTROL=1 calls acquire() instead, and looks at its answer.
Exit 1 with an AssertionError where the defect shows, 0 where it does not.
"""

import os

import etcd3gw

from frame.etcd_server import etcd_server


def show(port):
    client = etcd3gw.client(host="127.0.0.1", port=port, api_path="/v3/", timeout=60)
    first, second = (client.lock("job", ttl=600) for _ in range(2))
    if not first.acquire():
        raise RuntimeError("the lock was not free at the start")
    entered = False
    if os.environ.get("CONTROL"):
        entered = second.acquire()
    else:
        with second:
            entered = True
    both = entered and first.is_acquired()
    assert not both, "the second client is in its block, and the first one has the lock"


if __name__ == "__main__":
    with etcd_server() as server:
        show(server.port)
