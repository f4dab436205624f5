"""Faults of HTTP on real nodes: each is proved, meets open connections too, and leaves nothing."""

from __future__ import annotations

import subprocess

import pytest

from fencepost.harness.cluster.healing import heal, problems
from fencepost.nemesis.http import KINDS
from fencepost.nemesis.nemesis import Fault
from tests.cluster.conftest import Bench

SERVERS = ["kubernetes-1"]
PACKAGED = ("kubernetes",)
# One request after the other on one connection, until it ends or an answer is another one.
KEEPS_ALIVE = """
import http.client, time
link, end = http.client.HTTPConnection("kubernetes-1", 6443, timeout=20), time.monotonic() + 240
status = 200
try:
    while status == 200 and time.monotonic() < end:
        link.request("GET", "/version")
        answer = link.getresponse()
        status = answer.status
        answer.read()
        print(status, flush=True)
        time.sleep(0.02)
except (OSError, http.client.HTTPException) as error:
    print(type(error).__name__)
"""
ASKS = (
    "import http.client; link = http.client.HTTPConnection('kubernetes-1', 6443, timeout=20); "
    "link.request('GET', '/version'); print(link.getresponse().status)"
)


@pytest.fixture
def bench(cluster, tmp_path):
    found = Bench(cluster, tmp_path, "kubernetes-client", concurrency=2)
    yield found
    found.close()


def fault(kind):
    arguments = {"links": [["client-1", "kubernetes-1"]], "kind": kind, "time_s": 2.0}
    return Fault("h", "http", ["client-1", "kubernetes-1"], arguments)


@pytest.mark.parametrize("kind", KINDS)
def test_injection_and_heal_of_each_kind_have_a_receipt_and_leave_nothing(bench, kind):
    took_hold = bench.director.inject(fault(kind))
    # Its neighbour's requests reach the server.
    assert bench.run("client-2", "python3", "-c", ASKS) == "200"
    healed = bench.director.heal("h")
    assert took_hold.proved, took_hold
    assert healed.proved, healed
    assert bench.run("client-1", "python3", "-c", ASKS) == "200"
    rules = bench.run("kubernetes-1", "bash", "-c", "iptables -w -S; iptables -w -t nat -S")
    assert "FENCEPOST-HTTP" not in rules
    assert "http serve" not in bench.run("kubernetes-1", "ps", "-A", "-o", "args")
    assert bench.judge().valid is True


def test_a_connection_that_was_open_before_is_reset_once(bench, cluster):
    found = []
    # Not by the node's agent, which the probes need.
    container = f"{cluster.project}-client-1-1"
    words = ["docker", "exec", container, "python3", "-uc", KEEPS_ALIVE]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        found.append(process.stdout.readline().strip())
        receipt = bench.director.inject(fault("503"))
        found.extend(process.stdout.read().split())
    assert receipt.proved, receipt
    assert found[0] == "200" and "503" not in found, found
    assert found[-1] in ("ConnectionResetError", "RemoteDisconnected", "BrokenPipeError"), found
    assert bench.run("client-1", "python3", "-c", ASKS) == "503"


def test_what_a_killed_command_leaves_is_named_and_healed(bench, cluster):
    assert bench.director.inject(fault("hang")).proved
    # The director is as good as gone: it does not heal what another one may find.
    assert problems(cluster, SERVERS) == ["kubernetes-1: a proxy meets requests to its server"]
    assert heal(cluster, SERVERS) == ["kubernetes-1: removed its proxy of HTTP"]
    assert problems(cluster, SERVERS) == []
    assert bench.run("client-1", "python3", "-c", ASKS) == "200"
