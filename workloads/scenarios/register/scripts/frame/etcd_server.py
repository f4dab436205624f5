"""etcd as a local process."""

import json
import tempfile
import urllib.request
from contextlib import contextmanager

from frame.processes import free_port, running


@contextmanager
def etcd_server():
    port, peer = free_port(), free_port()
    here, there = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{peer}"
    with tempfile.TemporaryDirectory() as folder:
        command = [
            "etcd", "--data-dir", folder,
            "--listen-client-urls", here, "--advertise-client-urls", here,
            "--listen-peer-urls", there, "--initial-advertise-peer-urls", there,
            "--initial-cluster", f"default={there}",
        ]  # fmt: skip
        with running(command, port, has_leader) as server:
            yield server


def has_leader(port):
    url = f"http://127.0.0.1:{port}/v3/maintenance/status"
    with urllib.request.urlopen(url, b"{}", timeout=10) as answer:
        return "leader" in json.load(answer)
