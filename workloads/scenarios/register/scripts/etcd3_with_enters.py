"""etcd3, Lock: `with` enters its block after 10 s although another client has the lock.

Run with etcd3 0.12.0, tenacity 6.3.1, protobuf 3.20.3, etcd 3.4.23, Python 3.11.
Needs: pip install etcd3==0.12.0 tenacity==6.3.1 "protobuf<4"; Debian's etcd-server.
With a newer tenacity `acquire` of a held lock raises TypeError.
CONTROL=1 calls acquire() instead, and looks at its answer.
Exit 1 with an AssertionError where the defect shows, 0 where it does not.
"""

import os

import etcd3

from frame.etcd_server import etcd_server


def show(port):
    client = etcd3.client(host="127.0.0.1", port=port)
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
    client.close()
    assert not both, "the second client is in its block, and the first one has the lock"


if __name__ == "__main__":
    with etcd_server() as server:
        show(server.port)
