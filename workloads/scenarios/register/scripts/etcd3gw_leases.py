"""etcd3gw, Lock: every failed attempt leaves a lease in etcd until its TTL has passed.

Run with etcd3gw 2.7.0, etcd 3.4.23, Python 3.11.
Needs: pip install etcd3gw==2.7.0; Debian's etcd-server.
Exit 1 with an AssertionError where the defect shows, 0 where it does not.
"""

import socket
import subprocess
import tempfile
import time

import etcd3gw


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
