"""A real Dask: a scheduler and two workers, each in a process of its own."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from contextlib import contextmanager
from importlib.util import find_spec

import pytest

needs_dask = pytest.mark.skipif(
    find_spec("distributed") is None, reason="pip install 'fencepost[dask]'"
)


class Dask:
    """A scheduler and workers, each in a process of its own."""

    def __init__(self, tmp_path, workers=2):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
        self._tmp = tmp_path
        self._all = [self._start("scheduler", "--host", "127.0.0.1", "--no-dashboard", "--port",
                                 self.address.rpartition(":")[2])]  # fmt: skip
        self.workers = [self.worker() for _ in range(workers)]

    def worker(self):
        return self._start(
            "worker", self.address, "--nthreads", "1", "--no-nanny", "--no-dashboard",
            "--local-directory", str(self._tmp),
        )  # fmt: skip

    def _start(self, *words):
        words = [sys.executable, "-m", "dask", *words]
        made = subprocess.Popen(
            words, env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=self._tmp,
        )  # fmt: skip
        getattr(self, "_all", []).append(made)
        return made

    def ready(self):
        """Wait until both workers have connected."""
        from distributed import Client

        with Client(self.address, timeout=240, set_as_default=False) as client:
            client.wait_for_workers(2, timeout=240)

    def close(self):
        for process in reversed(self._all):
            process.kill()
            process.wait()


@contextmanager
def dasked(tmp_path, workers=2):
    made = Dask(tmp_path, workers)
    try:
        yield made
    finally:
        made.close()
