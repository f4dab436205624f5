"""Two defects of the official Kubernetes client for Python, on a real API server: the old leader
still works after the next one has begun.

They need `kube-apiserver` and `etcd` on the path, and the package `kubernetes`, in this Python or
in the folder that FENCEPOST_KUBERNETES names.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from tests.hunt.models import kubernetes_real as real
from tests.kubernetes.proxy import Proxy

ROOT = Path(__file__).parents[2]
PACKAGE = os.environ.get("FENCEPOST_KUBERNETES", "")
LONGER_S = 3.0
"""How long both must be at work."""
WITHIN_S = 120.0

pytestmark = [
    pytest.mark.skipif(bool(real.lacking()), reason=f"lacks {', '.join(real.lacking())}"),
    pytest.mark.skipif(
        not PACKAGE and importlib.util.find_spec("kubernetes") is None,
        reason="lacks the package kubernetes",
    ),
]


class Candidate:
    """A process of candidate.py, and the steps that it has named."""

    def __init__(self, port: int, identity: str) -> None:
        path = os.pathsep.join(part for part in (str(ROOT / "src"), str(ROOT), PACKAGE) if part)
        self._process = subprocess.Popen(
            [sys.executable, "-Wignore", "-m", "tests.kubernetes.candidate", str(port), identity],
            env={**os.environ, "PYTHONPATH": path}, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        self.said: list[tuple[float, str]] = []
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            when, _, step = line.strip().partition(" ")
            self.said.append((float(when), step))

    def times(self, step: str) -> list[float]:
        return [when for when, what in list(self.said) if what.startswith(step)]

    def close(self) -> None:
        self._process.kill()
        self._process.wait()


def wait_for(condition) -> None:
    end = time.monotonic() + WITHIN_S
    while not condition():
        assert time.monotonic() < end, "it has not come about"
        time.sleep(0.05)


@contextmanager
def two_leaders(way: str) -> Iterator[tuple[Candidate, float]]:
    """Yield the old leader, and for how long both have worked, after its link has become so."""
    with (
        real.api_server() as port,
        closing(Proxy(port)) as proxy,
        closing(Candidate(proxy.port, "a")) as old,
    ):
        wait_for(lambda: old.times("works"))
        with closing(Candidate(port, "b")) as new:
            proxy.set(way)
            wait_for(lambda: new.times("works"))
            began = new.times("works")[0]
            wait_for(lambda: old.times("works")[-1] > began + LONGER_S)
            overlap_s = old.times("works")[-1] - began
            print(f"{way}: both at work for {overlap_s:.2f} s, and on")
            yield old, overlap_s


def test_the_leader_whose_request_hangs_works_beside_the_next_one() -> None:
    with two_leaders("hold") as (old, overlap_s):
        assert overlap_s > LONGER_S
        assert not old.times("stopped") and not old.times("raised")


def test_the_leader_whose_connection_is_reset_is_not_told_to_stop() -> None:
    with two_leaders("reset") as (old, overlap_s):
        assert overlap_s > LONGER_S
        assert not old.times("stopped")
        assert old.times("raised")
