"""An etcd of this machine, on loopback."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.hunt.models.kubernetes_real import free_ports

START_S = 60.0


@contextmanager
def started(name: str, folder: Path) -> Iterator[tuple[str, int]]:
    """Start it, and yield its version, for example 3.4, and its port. Skip the test without it."""
    program = shutil.which(name)
    if program is None:
        pytest.skip(f"{name} is not installed")
    port, other = free_ports(2)
    client, peer = (f"http://127.0.0.1:{one}" for one in (port, other))
    server = subprocess.Popen(
        [program, "--data-dir", folder / "data", "--initial-cluster", f"default={peer}",
         "--listen-client-urls", client, "--advertise-client-urls", client,
         "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        end = time.monotonic() + START_S
        while True:
            with suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                break
            assert time.monotonic() < end and server.poll() is None, f"{name} does not start"
            time.sleep(0.05)
        said = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
        yield said.stdout.split()[2].rpartition(".")[0], port
    finally:
        server.kill()
        server.wait()
