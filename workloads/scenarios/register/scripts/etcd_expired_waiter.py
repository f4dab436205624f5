"""etcd, lock API: a waiter whose lease expired while it waited is granted the lock.

Run with etcd 3.4.23, Python 3.11. etcd 3.5.16 answers with an error.
Needs: etcd in the PATH. CONTROL=1 keeps the lease of the waiter alive.
Exit 1 with an AssertionError where the defect shows, 0 where it does not.
"""

import base64
import json
import os
import threading
import urllib.error
import urllib.request

from frame.etcd_server import etcd_server
from frame.processes import wait_for

TTL_S = 600 if os.environ.get("CONTROL") else 2
NAME = base64.b64encode(b"job").decode()


def call(port, path, **fields):
    """Call the JSON gateway; return the answer, or None if it is an error."""
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/v3/{path}", json.dumps(fields).encode()
    )
    try:
        with urllib.request.urlopen(request, timeout=120) as answer:
            return json.load(answer)
    except urllib.error.HTTPError:
        return None


def lease(port, ttl_s):
    return call(port, "lease/grant", TTL=ttl_s)["ID"]


def keys(port):
    end = base64.b64encode(b"job0").decode()  # "0" follows "/"
    found = call(port, "kv/range", key=base64.b64encode(b"job/").decode(), range_end=end)
    return [one["key"] for one in found.get("kvs", [])]


def show(port):
    held = call(port, "lock/lock", name=NAME, lease=lease(port, 600))["key"]
    granted, short = [], lease(port, TTL_S)
    waiter = threading.Thread(
        target=lambda: granted.append(call(port, "lock/lock", name=NAME, lease=short)), daemon=True
    )
    waiter.start()
    wait_for(lambda: len(keys(port)) == 2, "the waiter is not in the queue")
    if TTL_S < 600:
        wait_for(lambda: len(keys(port)) == 1, "its lease does not expire")
    call(port, "lock/unlock", key=held)
    waiter.join(60)
    if not granted:
        raise RuntimeError("the waiter was not answered")
    if granted[0] is None:
        return
    alive = granted[0]["key"] in keys(port)
    if not alive:
        other = call(port, "lock/lock", name=NAME, lease=lease(port, 600))["key"]
        raise AssertionError(
            f"two clients were granted the lock: the waiter with key {granted[0]['key']}, which "
            f"went with its lease before the grant, and another with key {other}"
        )


if __name__ == "__main__":
    with etcd_server() as server:
        show(server.port)
