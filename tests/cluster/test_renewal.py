"""A client whose renewals are paused works on, and the lock goes to another."""

from __future__ import annotations

import time

import pytest

from fencepost.checker.history import history
from fencepost.nemesis.nemesis import Fault
from tests.cluster.conftest import Bench

SERVERS = ["redis-1", *(f"{kind}-{n}" for kind in ("zookeeper", "etcd") for n in (1, 2, 3))]
RENEWAL = Fault("renewal", "pause", ["client-1"], {"threads": "renewal"})
TTL_NS = 2_000_000_000


@pytest.mark.parametrize(
    ("lock", "options"),
    [
        ("redis", {"watchdog": "true"}),
        ("etcd", {}),
        ("zookeeper", {}),
        ("kazoo", {}),
    ],
)
def test_a_holder_whose_renewal_is_paused_works_on_and_loses_the_lock(
    cluster, tmp_path, lock, options
):
    bench = Bench(cluster, tmp_path, lock, options, concurrency=2)
    try:
        one, two = bench.site.client("client-1"), bench.site.client("client-2")
        assert one.do("acquire", {"lock": "l", "ttl": TTL_NS}, 20)["type"] == "ok"
        took_hold = bench.director.inject(RENEWAL)
        assert took_hold.proved, took_hold
        if lock not in ("zookeeper", "kazoo"):  # there, the reporting thread is paused as well
            wait_for(bench, "lost", one.process)
        assert one.do("read", {"resource": "account"}, 20)["type"] == "ok"
        until_granted(two)
        assert bench.director.on
        healed = bench.director.heal("renewal")
        assert healed.proved, healed
        assert bench.judge().valid is True
    finally:
        bench.close()


def wait_for(bench, f, process):
    """Wait until the history has such an op of this process."""
    end = time.monotonic() + 240
    while not any(op.f == f and op.process == process for op in history.read(bench.recorder.path)):
        assert time.monotonic() < end, f"process {process} has not said {f}"
        time.sleep(0.05)


def until_granted(worker):
    end = time.monotonic() + 240
    while worker.do("acquire", {"lock": "l", "ttl": TTL_NS}, 20)["type"] != "ok":
        assert time.monotonic() < end, "the lock did not come back"
