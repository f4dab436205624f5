"""etcd, lock API: a waiter whose lease expired while it waited is granted the lock.

Run with etcd 3.4.23, Python 3.11. etcd 3.5.16 answers with an error.
Needs: etcd in the PATH. CONTROL=1 keeps the lease of the waiter alive.
Exit 1 with an AssertionError where the defect shows, 0 where it does not.
"""

import base64
import json
import os
import socket
import subprocess
import tempfile
import threading
import time
import urllib.error
import urllib.request

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


def wait_until(what, condition):
    for _ in range(1200):
        if condition():
            return
        time.sleep(0.05)
    raise RuntimeError(f"not within 60 s: {what}")


def show(port):
    held = call(port, "lock/lock", name=NAME, lease=lease(port, 600))["key"]
    granted, short = [], lease(port, TTL_S)
    waiter = threading.Thread(
        target=lambda: granted.append(call(port, "lock/lock", name=NAME, lease=short)), daemon=True
    )
    waiter.start()
    wait_until("the waiter is in the queue", lambda: len(keys(port)) == 2)
    if TTL_S < 600:
        wait_until("its lease has expired", lambda: len(keys(port)) == 1)
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


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def start(folder):
    port, peers = free_port(), free_port()
    here, there = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{peers}"
    places = {
        "--data-dir": folder,
        "--listen-client-urls": here,
        "--advertise-client-urls": here,
        "--listen-peer-urls": there,
        "--initial-advertise-peer-urls": there,
        "--initial-cluster": f"default={there}",
    }
    words = [word for pair in places.items() for word in pair]
    server = subprocess.Popen(
        ["etcd", *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    for _ in range(1200):
        try:
            if call(port, "maintenance/status"):
                return server, port
        except OSError:
            if server.poll() is not None:
                break
        time.sleep(0.1)
    server.kill()
    raise RuntimeError("etcd did not start")


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
