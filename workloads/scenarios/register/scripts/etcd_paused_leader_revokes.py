"""etcd: a leader that was paused revokes leases which its successor has kept alive.

Run with etcd 3.4.23 and 3.5.16, Python 3.11.
Needs: etcd in the PATH.
Exit 1 with an AssertionError where the defect shows, 0 where it does not.
"""

import base64
import signal
import threading
import time

from frame.etcd_cluster import ask, etcd_cluster, leader
from frame.processes import wait_for

ROUNDS = 10
TTL_S = 2
OTHERS = 40
# etcd gives up a revocation after 5 s and twice its election timeout.
WAIT_S = 12


class Kept:
    """A key with a lease that is kept alive by a live member, as a lock's holder does."""

    def __init__(self, port):
        self.port, self.until, self.over = port, 0.0, threading.Event()
        self.lease = ask(port, "/v3/lease/grant", {"TTL": TTL_S})["ID"]
        self.key = base64.b64encode(f"lock-{self.lease}".encode()).decode()
        ask(port, "/v3/kv/put", {"key": self.key, "value": self.key, "lease": self.lease})
        self.thread = threading.Thread(target=self.keep, daemon=True)
        self.thread.start()

    def keep(self):
        while not self.over.wait(0.2):
            asked = time.monotonic()
            try:
                answer = ask(self.port, "/v3/lease/keepalive", {"ID": self.lease})
            except OSError:
                continue
            if int(answer["result"].get("TTL", 0)) > 0:
                self.until = asked + TTL_S

    def there(self):
        return "kvs" in ask(self.port, "/v3/kv/range", {"key": self.key})

    def close(self):
        self.over.set()
        self.thread.join()


def show(members):
    """Pause the leader until its clock says that the lease has expired, and let it continue."""
    old = members[wait_for(lambda: leader(members), "no leader") - 1]
    others = [one for one in members if one is not old]
    # Leases of other clients, which expire: the old leader revokes few at a time.
    for _ in range(OTHERS):
        ask(others[0].port, "/v3/lease/grant", {"TTL": TTL_S})
    kept = Kept(others[0].port)
    try:
        old.process.send_signal(signal.SIGSTOP)
        wait_for(lambda: leader(others), "no new leader")
        since = time.monotonic()
        wait_for(lambda: time.monotonic() > since + 2 * TTL_S, "time")
        wait_for(lambda: kept.until > since + 1.5 * TTL_S, "the lease was not kept alive")
        if not kept.there():
            raise RuntimeError("the key was gone before the old leader continued")
        old.process.send_signal(signal.SIGCONT)
        for _ in range(10 * WAIT_S):
            now, there = time.monotonic(), kept.there()
            assert there or now > kept.until, (
                f"the key is gone, {kept.until - now:.1f} s before the lease ends by its last "
                "answer: another client can acquire the lock"
            )
            time.sleep(0.1)
    finally:
        old.process.send_signal(signal.SIGCONT)
        kept.close()


if __name__ == "__main__":
    with etcd_cluster() as members:
        for _ in range(ROUNDS):
            show(members)
