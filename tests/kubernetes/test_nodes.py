"""API servers on nodes, in the image with kube-apiserver: they share their objects, and survive the
loss of one."""

from __future__ import annotations

import contextlib
import http.client
import json
from collections.abc import Iterator

import pytest

from fencepost.harness.cluster.compose import ComposeCluster
from fencepost.harness.cluster.provision import Way, brought_up
from fencepost.harness.servers.kinds import KINDS
from fencepost.harness.servers.kube_apiserver import PORT
from fencepost.harness.servers.server import Server
from fencepost.harness.servers.wait import START_S

NODES = ("kubernetes-1", "kubernetes-2", "kubernetes-3")
LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"


@pytest.fixture(scope="module")
def cluster() -> Iterator[ComposeCluster]:
    with brought_up([*NODES, "client-1"], print, way=Way(kinds=("kube-apiserver",))) as found:
        yield found


@pytest.fixture(scope="module")
def fresh(cluster: ComposeCluster) -> dict[str, Server]:
    found = {
        node: Server(cluster.remote(node), KINDS["kube-apiserver"], {"SERVERS": "3"})
        for node in NODES
    }
    for server in found.values():
        # A node that has just come up starts the usual kind of its servers, the model, by itself.
        server.wait_pid()
        server.kill()
        server.wipe()
    return found


@pytest.fixture
def servers(fresh: dict[str, Server]) -> dict[str, Server]:
    for server in fresh.values():
        server.start()
    for server in fresh.values():
        server.wait_ready(timeout_s=START_S)
    return fresh


def ask(cluster, node, method, path, body=None):
    link = http.client.HTTPConnection(cluster.address(node), PORT, timeout=30)
    with contextlib.closing(link):
        content = json.dumps(body) if body else None
        link.request(method, path, content, {"Content-Type": "application/json"} if body else {})
        answer = link.getresponse()
        return answer.status, json.loads(answer.read())


def lease(name, **meta):
    return {"metadata": {"name": name, **meta}, "spec": {"holderIdentity": name}}


def test_what_one_server_stores_another_one_shows(cluster, servers):
    assert ask(cluster, NODES[0], "POST", LEASES, lease("a"))[0] == 201
    status, found = ask(cluster, NODES[1], "GET", f"{LEASES}/a")
    assert (status, found["spec"]["holderIdentity"]) == (200, "a")
    assert servers[NODES[2]].version().startswith("kube-apiserver v1.20.2 on etcd 3.4")
    low, high = servers[NODES[0]].look_at_clock("wall", {})
    assert low <= 0 <= high


@pytest.mark.parametrize("fault", ["pause", "kill"])
def test_two_of_three_servers_go_on_and_the_third_catches_up(cluster, servers, fault):
    (leader,) = (node for node in NODES if servers[node].leads())
    getattr(servers[leader], fault)()
    others = [node for node in NODES if node != leader]
    servers[others[0]].wait_ready(timeout_s=START_S)
    assert ask(cluster, others[0], "POST", LEASES, lease(fault))[0] == 201
    servers[leader].resume() if fault == "pause" else servers[leader].start()
    servers[leader].wait_ready(timeout_s=START_S)
    assert ask(cluster, leader, "GET", f"{LEASES}/{fault}")[0] == 200


def test_a_killed_server_leaves_no_process(cluster, servers):
    assert servers[NODES[0]].kill() is not None
    processes = ["pgrep", "-f", "-c", "etcd --name|kube-apiserver|kube_front"]
    shown = cluster.remote(NODES[0]).run(processes, check=False)
    assert shown.out.strip() == "0"
