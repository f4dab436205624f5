"""etcd: a leader that was paused revokes leases which its successor has kept alive.

Run with etcd 3.4.23 and 3.5.16, Python 3.11.
Needs: etcd in the PATH.
Exit 1 with an AssertionError where the defect shows, 0 where it does not.
"""

import base64
import json
import os
import signal
import socket
import subprocess
import tempfile
import threading
import time
import urllib.request

ROUNDS = 10
TTL_S = 2
OTHERS = 40
# etcd gives up a revocation after 5 s and twice its election timeout.
WAIT_S = 12


def ask(port, path, body):
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}{path}", json.dumps(body).encode(), method="POST"
    )
    with urllib.request.urlopen(request, timeout=1) as answer:
        return json.loads(answer.read())


def wait_for(condition, what, limit_s=60):
    end = time.monotonic() + limit_s
    while time.monotonic() < end:
        try:
            if found := condition():
                return found
        except OSError:
            pass
        time.sleep(0.05)
    raise RuntimeError(f"waited {limit_s} s in vain: {what}")


def leader(members):
    """Return the number of the member that the others follow."""
    said = [ask(port, "/v3/maintenance/status", {}) for port, _ in members]
    ids = [one["header"]["member_id"] for one in said]
    leaders = {one.get("leader") for one in said}
    return ids.index(leaders.pop()) + 1 if len(leaders) == 1 and leaders <= set(ids) else None


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


def show(members, processes):
    """Pause the leader until its clock says that the lease has expired, and let it continue."""
    old = wait_for(lambda: leader(members), "no leader") - 1
    others = [one for one in members if one is not members[old]]
    # Leases of other clients, which expire: the old leader revokes few at a time.
    for _ in range(OTHERS):
        ask(others[0][0], "/v3/lease/grant", {"TTL": TTL_S})
    kept = Kept(others[0][0])
    try:
        processes[old].send_signal(signal.SIGSTOP)
        wait_for(lambda: leader(others), "no new leader")
        since = time.monotonic()
        wait_for(lambda: time.monotonic() > since + 2 * TTL_S, "time")
        wait_for(lambda: kept.until > since + 1.5 * TTL_S, "the lease was not kept alive")
        if not kept.there():
            raise RuntimeError("the key was gone before the old leader continued")
        processes[old].send_signal(signal.SIGCONT)
        for _ in range(10 * WAIT_S):
            now, there = time.monotonic(), kept.there()
            assert there or now > kept.until, (
                f"the key is gone, {kept.until - now:.1f} s before the lease ends by its last "
                "answer: another client can acquire the lock"
            )
            time.sleep(0.1)
    finally:
        processes[old].send_signal(signal.SIGCONT)
        kept.close()


def free_ports(count):
    listeners = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [one.getsockname()[1] for one in listeners]
    for one in listeners:
        one.close()
    return ports


def start(folder, etcd="etcd"):
    ports = free_ports(6)
    members = list(zip(ports[:3], ports[3:], strict=True))
    cluster = ",".join(f"m{n}=http://127.0.0.1:{peer}" for n, (_, peer) in enumerate(members))
    processes = []
    for n, (client, peer) in enumerate(members):
        client_url, peer_url = f"http://127.0.0.1:{client}", f"http://127.0.0.1:{peer}"
        command = [
            etcd, "--name", f"m{n}", "--data-dir", os.path.join(folder, f"m{n}"),
            "--listen-client-urls", client_url, "--advertise-client-urls", client_url,
            "--listen-peer-urls", peer_url, "--initial-advertise-peer-urls", peer_url,
            "--initial-cluster", cluster,
        ]  # fmt: skip
        with open(os.path.join(folder, f"m{n}.log"), "wb") as log:
            processes.append(subprocess.Popen(command, stdout=log, stderr=log))
    return members, processes


def main():
    with tempfile.TemporaryDirectory() as folder:
        members, processes = start(folder)
        try:
            for _ in range(ROUNDS):
                show(members, processes)
        finally:
            for process in processes:
                process.kill()
                process.wait()


if __name__ == "__main__":
    main()
