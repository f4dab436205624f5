"""etcd's gateway, played by a server on loopback: the meaning of its answers and of silence."""

from __future__ import annotations

import http.server
import json
import socket
import threading
import time

import pytest

from fencepost.workloads.contract.lock import Failed, Indeterminate
from fencepost.workloads.transport.etcd_gateway import Gateway, after, plain, text


class Server(http.server.ThreadingHTTPServer):
    """Answers each path with the entry of `answers`: (status, body), or a list of lines."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers = {}
        self.asked = []
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append((self.path, body))
        status, answer = self.server.answers[self.path]
        data = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


@pytest.fixture
def server():
    server = Server()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def nobody():
    """Return an address without a listener."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()


def gateway(*addresses):
    return Gateway(addresses, 1.0, time.monotonic_ns)


def test_keys_go_in_base64_and_come_back():
    assert plain(text("fencepost/ä")) == "fencepost/ä"
    assert after("lock/a/") == "lock/a0"


def test_an_answer_is_handed_over_and_of_a_stream_the_first_message(server):
    server.answers = {
        "/v3/kv/range": (200, {"count": "1"}),
        "/v3/lease/keepalive": (200, b'{"result":{"ID":"7","TTL":"2"}}\n'),
    }
    client = gateway(server.server_address)
    assert client.call("kv/range", {}) == {"count": "1"}
    client.keep_alive(7)
    assert server.asked[1] == ("/v3/lease/keepalive", {"ID": "7"})


@pytest.mark.parametrize("code", [3, 5, 9])
def test_a_request_that_etcd_refused_for_good_has_not_happened(server, code):
    server.answers = {"/v3/kv/txn": (400, {"error": "no", "code": code, "message": "no such"})}
    with pytest.raises(Failed, match="no such") as error:
        gateway(server.server_address).call("kv/txn", {})
    assert not isinstance(error.value, Indeterminate)
    assert error.value.kind == "refused"


@pytest.mark.parametrize("code", [2, 4, 14])
def test_a_timeout_or_a_change_of_leader_leaves_the_outcome_unknown(server, code):
    server.answers = {"/v3/kv/txn": (503, {"code": code, "message": "etcdserver: timed out"})}
    with pytest.raises(Indeterminate, match="timed out"):
        gateway(server.server_address).call("kv/txn", {})


def test_the_error_of_a_stream_is_an_error(server):
    server.answers = {
        "/v3/lease/keepalive": (200, {"error": {"grpc_code": 14, "message": "no leader"}})
    }
    with pytest.raises(Indeterminate, match="no leader"):
        gateway(server.server_address).keep_alive(7)


def test_an_answer_that_is_no_json_leaves_the_outcome_unknown(server):
    server.answers = {"/v3/kv/txn": (502, b"<html>")}
    with pytest.raises(Indeterminate, match="no JSON"):
        gateway(server.server_address).call("kv/txn", {})


def test_a_server_that_is_down_is_passed_over(server, nobody):
    server.answers = {"/v3/kv/range": (200, {"count": "1"})}
    assert gateway(nobody, server.server_address).call("kv/range", {}) == {"count": "1"}


def test_with_all_servers_down_a_request_certainly_did_not_happen(nobody):
    with pytest.raises(Failed) as error:
        gateway(nobody).call("kv/txn", {})
    assert error.value.kind == "unreachable"
    assert not isinstance(error.value, Indeterminate)


def test_an_idempotent_request_is_retried_on_another_server(server):
    other = Server()
    try:
        server.answers = {"/v3/kv/range": (503, {"code": 14, "message": "no leader"})}
        other.answers = {"/v3/kv/range": (200, {})}
        assert gateway(server.server_address, other.server_address).ask("kv/range", {}) == {}
    finally:
        other.shutdown()
        other.server_close()


def test_an_expired_lease_has_no_ttl(server):
    server.answers = {
        "/v3/lease/keepalive": (200, {"result": {"ID": "7"}}),
        "/v3/lease/timetolive": (200, {"ID": "7", "TTL": "-1"}),
    }
    client = gateway(server.server_address)
    with pytest.raises(Failed, match="lease 7 is gone"):
        client.keep_alive(7)
    assert client.lives(7) is False
    server.answers["/v3/lease/timetolive"] = (200, {"ID": "7", "grantedTTL": "2"})
    assert client.lives(7) is True  # zero is left out


def test_a_deletion_wakes_a_watcher_and_other_events_do_not(server):
    created = b'{"result":{"created":true}}\n'
    deleted = b'{"result":{"events":[{"type":"DELETE","kv":{"key":"YQ=="}}]}}\n'
    client = gateway(server.server_address)
    server.answers = {"/v3/watch": (200, created)}
    assert client.wait_deleted("a", 5, 0.2) is False
    server.answers = {"/v3/watch": (200, created + deleted)}
    assert client.wait_deleted("a", 5, 5) is True
    wanted = server.asked[-1][1]["create_request"]
    assert (wanted["key"], wanted["start_revision"]) == (text("a"), "5")


def test_a_key_is_deleted_only_if_it_is_the_one_of_that_revision(server):
    server.answers = {"/v3/kv/txn": (200, {"succeeded": True})}
    assert gateway(server.server_address).delete_if("a", 9) is True
    compared = server.asked[0][1]["compare"][0]
    assert (compared["target"], compared["create_revision"]) == ("CREATE", "9")
    server.answers = {"/v3/kv/txn": (200, {})}
    assert gateway(server.server_address).delete_if("a", 9) is False
