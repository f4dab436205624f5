"""The model of Kubernetes' API by HTTP, as it runs on nodes."""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, closing, contextmanager

import pytest

from fencepost.harness.cluster import nodecode
from fencepost.harness.servers import kubernetes, kubernetes_api
from fencepost.hunt.models.kubernetes import serve
from fencepost.hunt.models.kubernetes.watches import Watch
from fencepost.node.kind import Start

LEASES = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
HOST = "127.0.0.1"


@contextmanager
def serving(source):
    """Serve from a source; yield the port."""
    server = serve.server(HOST, 0, serve.source_of(str(source)))
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def ask(port, method, path, body=None, **headers):
    content = None if body is None else json.dumps(body).encode()
    with closing(http.client.HTTPConnection(HOST, port, timeout=120)) as link:
        link.request(method, path, content, {"Content-Type": "application/json", **headers})
        reply = link.getresponse()
        return reply.status, json.loads(reply.read())


def lease(name, holder="a", **meta):
    return {"metadata": {"name": name, **meta}, "spec": {"holderIdentity": holder}}


def test_objects_survive_the_end_of_the_server(tmp_path):
    file = tmp_path / "objects.json"
    with serving(file) as port:
        status, made = ask(port, "POST", LEASES, lease("x"))
        assert status == 201
        assert ask(port, "POST", LEASES, lease("gone"))[0] == 201
        assert ask(port, "DELETE", f"{LEASES}/gone")[0] == 200
    with serving(file) as port:
        assert ask(port, "GET", f"{LEASES}/x") == (200, made)
        assert ask(port, "GET", f"{LEASES}/gone")[0] == 404
        later = ask(port, "POST", LEASES, lease("y"))[1]["metadata"]
        assert int(later["resourceVersion"]) > int(made["metadata"]["resourceVersion"])
        assert later["uid"] != made["metadata"]["uid"]


def test_each_write_is_in_the_file_before_it_is_answered(tmp_path, monkeypatch):
    file = tmp_path / "objects.json"
    seen = []
    encoded = serve._Handler._send

    def send(self, status, body):
        seen.append((status, b'"x"' in file.read_bytes() if file.exists() else False))
        encoded(self, status, body)

    monkeypatch.setattr(serve._Handler, "_send", send)
    with serving(file) as port:
        ask(port, "GET", f"{LEASES}/x")
        ask(port, "POST", LEASES, lease("x"))
    assert seen == [(404, False), (201, True)]


def test_another_server_forwards_requests_and_answers_500_without_the_first(tmp_path):
    file = tmp_path / "objects.json"
    with serving(file) as first, serving(f"http://{HOST}:{first}") as second:
        made = ask(second, "POST", LEASES, lease("x"))
        assert made[0] == 201
        assert ask(first, "GET", f"{LEASES}/x") == (200, made[1])
        stale = lease("x", "b", resourceVersion="1")
        assert ask(second, "PUT", f"{LEASES}/x", stale)[0] == 409
    with serving(f"http://{HOST}:{first}") as second:
        status, found = ask(second, "GET", f"{LEASES}/x")
        assert (status, found["message"]) == (500, "etcdserver: request timed out")


def test_what_the_model_lacks_is_answered_with_501_and_a_sentence(tmp_path):
    with serving(tmp_path / "objects.json") as port:
        status, found = ask(port, "GET", f"{LEASES}?watch=true&labelSelector=a")
        assert status == 501 and "Kubernetes has no watch with watch=true&label" in found["message"]
        status, found = ask(port, "GET", "/api/v1/pods")
        assert status == 501 and "a model" in found["message"]
        assert ask(port, "GET", "/version")[1]["gitVersion"] == "v1.20.2"


@contextmanager
def watching(port, query=""):
    """Begin a watch; yield its connection and its answer."""
    with closing(http.client.HTTPConnection(HOST, port, timeout=120)) as link:
        link.request("GET", f"{LEASES}?watch=true&{query}")
        socket = link.sock
        yield socket, link.getresponse()


def event(reply):
    found = json.loads(reply.readline())
    return found["type"], found["object"]["metadata"]["name"]


@pytest.mark.parametrize("servers", [1, 2], ids=["its own", "forwarded"])
def test_the_events_of_a_watch_arrive_while_it_goes_on(tmp_path, servers):
    with serving(tmp_path / "objects.json") as first, ExitStack() as stack:
        other = stack.enter_context(serving(f"http://{HOST}:{first}")) if servers == 2 else first
        ask(first, "POST", LEASES, lease("x"))
        with watching(other) as (_, reply):
            assert event(reply) == ("ADDED", "x")
            ask(first, "POST", LEASES, lease("y"))
            assert event(reply) == ("ADDED", "y")
            ask(other, "DELETE", f"{LEASES}/x")
            assert event(reply) == ("DELETED", "x")


@pytest.mark.parametrize("servers", [1, 2], ids=["its own", "forwarded"])
def test_a_watch_ends_after_its_timeout(tmp_path, servers):
    with serving(tmp_path / "objects.json") as first, ExitStack() as stack:
        other = stack.enter_context(serving(f"http://{HOST}:{first}")) if servers == 2 else first
        begun = time.monotonic()
        with watching(other, "timeoutSeconds=1") as (_, reply):
            assert reply.read() == b""
        assert time.monotonic() - begun >= 1


@pytest.mark.parametrize("servers", [1, 2], ids=["its own", "forwarded"])
def test_a_watch_ends_with_the_connection_of_its_client(tmp_path, servers, monkeypatch):
    monkeypatch.setattr(serve, "_LOOKS_S", 0.05)
    ended = threading.Event()
    closes = Watch.close

    def close(self):
        closes(self)
        ended.set()

    monkeypatch.setattr(Watch, "close", close)
    with serving(tmp_path / "objects.json") as first, ExitStack() as stack:
        other = stack.enter_context(serving(f"http://{HOST}:{first}")) if servers == 2 else first
        with watching(other) as (socket, reply):
            socket.close()
            reply.close()
        assert ended.wait(60)


def test_a_watch_from_before_the_start_is_an_error_with_410(tmp_path):
    file = tmp_path / "objects.json"
    with serving(file) as port:
        made = ask(port, "POST", LEASES, lease("x"))[1]
        ask(port, "POST", LEASES, lease("y"))
    with serving(file) as port:
        with watching(port, f"resourceVersion={made['metadata']['resourceVersion']}") as (_, reply):
            found = [json.loads(line) for line in reply]
        assert [(one["type"], one["object"]["code"]) for one in found] == [("ERROR", 410)]


def test_a_watch_at_a_server_without_the_first_is_answered_with_500(tmp_path):
    with serving(tmp_path / "objects.json") as first:
        pass
    with serving(f"http://{HOST}:{first}") as second:
        assert ask(second, "GET", f"{LEASES}?watch=true")[0] == 500


def test_a_node_reads_its_version_and_bounds_its_clock(tmp_path):
    with serving(tmp_path / "objects.json") as port:
        assert kubernetes_api.version(http.client.HTTPConnection(HOST, port)) == "v1.20.2"
        shown = kubernetes_api.wall(http.client.HTTPConnection(HOST, port))
    # The server's clock is this one, and the Date shows whole seconds of it.
    assert shown["low_s"] <= 0 <= shown["high_s"] and shown["high_s"] - shown["low_s"] >= 1


def test_a_refusal_is_an_error_of_the_node_with_the_servers_words(tmp_path):
    with serving(tmp_path / "objects.json") as port:
        link = http.client.HTTPConnection(HOST, port)
        with pytest.raises(OSError, match=r"answered 501 to /api/v1/pods: .* a model"):
            kubernetes_api.ask(link, "/api/v1/pods")
    with pytest.raises(OSError):
        kubernetes_api.ask(http.client.HTTPConnection(HOST, port), "/version")


@pytest.mark.parametrize(
    "headers", [{"Content-Length": "9999999999"}, {"Content-Length": "-1"}], ids=["long", "no size"]
)
def test_a_body_that_cannot_be_read_is_answered_with_413(tmp_path, headers):
    with serving(tmp_path / "objects.json") as port:
        assert ask(port, "POST", LEASES, **headers)[0] == 413
        assert ask(port, "GET", LEASES)[0] == 200


def test_it_runs_with_nothing_but_the_files_of_a_node(tmp_path, monkeypatch):
    """Its command starts Python without site-packages, from the files that nodes get."""
    for path, content in nodecode.files().items():
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    start = Start("kubernetes-1", str(tmp_path), "", {}, (HOST,))
    python, option, script, _, *source = kubernetes._command(start)
    assert python == "python3" and source == [f"{tmp_path}/objects.json", HOST]
    script = script.replace(kubernetes.HOME, str(tmp_path))
    # It ends at once, because it cannot listen there.
    words = [sys.executable, option, script, "0", source[0], "192.0.2.1"]
    ended = subprocess.run(words, capture_output=True, text=True, timeout=120)
    assert ended.stderr.splitlines()[-1].startswith("OSError: "), ended.stderr


def test_the_first_server_has_the_objects_and_the_others_forward_to_it():
    def source(node):
        return kubernetes._command(Start(node, "/data", "", {}))[-2]

    assert source("kubernetes-1") == "/data/objects.json"
    assert source("kubernetes-3") == "http://kubernetes-1:6443"
