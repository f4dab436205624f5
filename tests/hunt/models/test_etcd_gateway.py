"""Requests to etcd's gateway as bytes: the model answers as etcd 3.4 and 3.5 do."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
import time
import urllib.error
import urllib.request

import pytest

from fencepost.hunt.models.etcd import gateway
from fencepost.hunt.models.etcd.server import Cluster, EtcdServer
from fencepost.hunt.sim.network import LATER, Network
from fencepost.hunt.sim.unknown import Unknown
from fencepost.hunt.sim.world import World
from tests.hunt.models.kubernetes_real import free_ports

START_S = 60.0


def coded(text):
    return base64.b64encode(text.encode()).decode()


A, B = coded("a"), coded("b")
ASKED = [
    ("lease/grant", {"TTL": 50, "ID": 7}),
    ("lease/grant", {"TTL": "50", "ID": "7"}),
    ("lease/revoke", {"ID": 99}),
    ("lease/keepalive", {"ID": 7}),
    ("lease/keepalive", {"ID": "99"}),
    ("lease/timetolive", {"ID": 99}),
    ("kv/put", {"key": A, "value": A, "lease": 99}),
    ("kv/put", {"key": A, "value": B, "lease": 7}),
    ("kv/range", {"key": A}),
    ("kv/range", {
        "key": A, "rangeEnd": coded("c"), "limit": 1, "sortOrder": "DESCEND",
        "sortTarget": "CREATE",
    }),
    ("kv/txn", {
        "compare": [{"key": B, "target": "CREATE", "createRevision": "0"}],
        "success": [{"requestPut": {"key": B, "value": B, "lease": "7"}}],
        "failure": [{"requestRange": {"key": B}}],
    }),
    ("kv/txn", {
        "compare": [{"key": B, "target": "MOD", "result": "EQUAL", "mod_revision": 1}],
        "success": [], "failure": [{"request_range": {"key": B}}],
    }),
    ("kv/txn", {"compare": [{"key": B, "target": "VALUE", "value": B}]}),
    ("kv/txn", {"compare": [{"key": B, "target": "VALUE", "result": "EQUAL", "value": A}]}),
    ("kv/txn", {"compare": [{"key": coded("none"), "target": "VALUE", "value": ""}]}),
    ("kv/txn", {"success": [{"requestPut": {"key": A}}, {"requestPut": {"key": A}}]}),
    ("kv/deleterange", {"key": A}),
    ("kv/deleterange", {"key": A}),
    ("lock/unlock", {"key": coded("nobody's")}),
    ("lease/revoke", {"ID": "7"}),
    ("kv/range", {"key": B}),
]  # fmt: skip


@pytest.fixture(params=["etcd", "etcd-3.5"])
def real(request, tmp_path):
    """Return the version and the URL of an etcd on loopback."""
    program = shutil.which(request.param)
    if program is None:
        pytest.skip(f"{request.param} is not installed")
    client, peer = (f"http://127.0.0.1:{port}" for port in free_ports(2))
    server = subprocess.Popen(
        [program, "--data-dir", tmp_path / "data", "--initial-cluster", f"default={peer}",
         "--listen-client-urls", client, "--advertise-client-urls", client,
         "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        end = time.monotonic() + START_S
        while True:
            try:
                post(client, "kv/range", {"key": A})
                break
            except OSError:
                assert time.monotonic() < end and server.poll() is None, "etcd does not start"
                time.sleep(0.05)
        said = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
        yield said.stdout.split()[2].rpartition(".")[0], client
    finally:
        server.kill()
        server.wait()


def post(url, path, body):
    asked = urllib.request.Request(f"{url}/v3/{path}", json.dumps(body).encode(), method="POST")
    try:
        with urllib.request.urlopen(asked, timeout=120) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read())


class Modelled:
    def __init__(self, version):
        world = World()
        self.server = EtcdServer("etcd-1", 0, Cluster(Network(world, None), version != "3.4"))
        self.session = self.server.session()

    def post(self, path, body):
        data = json.dumps(body).encode()
        head = f"POST /v3/{path} HTTP/1.1\r\nHost: etcd-1\r\nContent-Length: {len(data)}\r\n\r\n"
        (command,) = self.session.commands(head.encode() + data)
        reply = self.session.execute(self.server, command)
        assert reply is not LATER
        head, _, told = self.session.encoded(command, reply).partition(b"\r\n\r\n")
        return int(head.split()[1]), json.loads(told)


def compared(answer):
    """Leave out what differs between clusters, and the rest of a lease."""
    status, body = answer

    def plain(value):
        if isinstance(value, dict):
            return {key: plain(one) for key, one in value.items() if key != "header"}
        return [plain(one) for one in value] if isinstance(value, list) else value

    revision = body.get("header", {}).get("revision")
    return status, revision, plain(body)


def test_the_model_answers_as_etcd_does(real):
    version, url = real
    model = Modelled(version)
    for path, body in ASKED:
        told, answered = post(url, path, body), model.post(path, body)
        assert compared(answered) == compared(told), (path, body)


@pytest.mark.parametrize(
    ("method", "path", "body", "why"),
    [
        ("GET", "/health", b"", "no GET /health"),
        ("POST", "/v3/election/campaign", b"{}", "no election/campaign"),
        ("POST", "/v3/watch", b"{}", "no watch for clients with their own HTTP library"),
        ("POST", "/v3/kv/range", b"[", "answers no request that is not JSON"),
    ],
)
def test_what_the_model_lacks_is_named(method, path, body, why):
    model = Modelled("3.5")
    with pytest.raises(Unknown, match=why):
        model.server.handle(gateway.command((method, path, "", "", body)))
