"""The proxy does its fault to each request of the chosen clients, and counts each."""

from __future__ import annotations

import http.client
import json
import socket
import time

import pytest

from fencepost.nemesis import http as family
from fencepost.node import httpproxy
from fencepost.node.httpfault import table
from tests.http_server import Recording, proxy, serving

LATE_S = 0.3


@pytest.fixture
def server():
    with serving(found := Recording()):
        yield found


@pytest.fixture
def through(server, tmp_path):
    """Return a function that sends one request through a proxy of a kind."""
    opened = []

    def send(
        kind, method="PUT", body=b"mine", timeout=120.0, source="127.0.0.1", path="/a?b=c",
        **changed,
    ):  # fmt: skip
        on = serving(proxy(kind, server.server_address[1], tmp_path / "http.json", **changed))
        opened.append(on)
        link = http.client.HTTPConnection(
            "127.0.0.1", on.__enter__(), timeout=timeout, source_address=(source, 0)
        )
        link.request(method, path, body, {"Content-Type": "text/mine"})
        return link.getresponse()

    yield send
    for on in opened:
        on.__exit__(None, None, None)


def met(tmp_path):
    return json.loads((tmp_path / "http.json").read_text())["met"]


ONE = {"127.0.0.1": {"requests": 1, "faulted": 1, "probes": 0}}
ARRIVED = [("PUT", "/a?b=c", "text/mine", b"mine")]


def test_a_request_that_hangs_gets_no_answer_and_its_connection_stays_open(
    server, through, tmp_path
):
    with pytest.raises(TimeoutError):
        through("hang", timeout=0.3)
    assert (server.seen, met(tmp_path)) == ([], ONE)


@pytest.mark.parametrize(("kind", "arrived"), [("reset", []), ("lost", ARRIVED)])
def test_a_connection_is_reset_before_the_server_sees_the_request_or_after(
    server, through, tmp_path, kind, arrived
):
    with pytest.raises(ConnectionResetError):
        through(kind)
    assert (server.seen, met(tmp_path)) == (arrived, ONE)


@pytest.mark.parametrize("status", [409, 429, 500, 503])
def test_a_request_is_refused_with_a_status_that_the_api_of_kubernetes_has(
    server, through, tmp_path, status
):
    answer = through(str(status), time_s=2.0)
    content = json.loads(answer.read())
    assert (answer.status, content["kind"], content["code"]) == (status, "Status", status)
    assert answer.headers["Retry-After"] == ("2" if status == 429 else None)
    assert (server.seen, met(tmp_path)) == ([], ONE)


def test_a_slow_answer_is_the_server_s_own_and_comes_late(server, through, tmp_path):
    begun = time.monotonic()
    answer = through("slow", time_s=LATE_S)
    assert time.monotonic() - begun >= LATE_S
    assert (answer.status, answer.headers["X-Own"], answer.read()) == (201, "yes", b"done")
    assert (server.seen, met(tmp_path)) == (ARRIVED, ONE)


@pytest.mark.parametrize("kind", httpproxy.WATCHES)
def test_a_fault_of_watches_leaves_other_requests_alone(server, through, tmp_path, kind):
    answer = through(kind)
    assert (answer.status, answer.read()) == (201, b"done")
    assert server.seen == ARRIVED
    assert met(tmp_path) == {"127.0.0.1": {"requests": 1, "faulted": 0, "probes": 0}}


@pytest.mark.parametrize("query", ["watch=true", "resourceVersion=7&watch=1"])
def test_a_watch_ends_at_once_or_stays_open_without_an_event(server, through, tmp_path, query):
    asked = {"method": "GET", "body": None, "path": f"/leases?{query}"}
    ended = through("watch-ends", **asked)
    assert (ended.status, ended.read(), met(tmp_path)) == (200, b"", ONE)
    silent = through("watch-silent", **asked)
    assert (silent.status, met(tmp_path)) == (200, ONE)
    # Only for the body: on a busy machine the header may take longer.
    silent.fp.raw._sock.settimeout(0.3)
    with pytest.raises(TimeoutError):
        silent.read()
    assert server.seen == []


def test_a_connection_carries_several_requests_and_each_is_counted(server, tmp_path):
    on = proxy("503", server.server_address[1], tmp_path / "http.json")
    with serving(on) as port:
        link = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        for agent in ("mine", httpproxy.PROBE, "mine"):
            link.request("GET", "/", headers={"User-Agent": agent})
            assert link.getresponse().read()
        link.close()
    assert met(tmp_path) == {"127.0.0.1": {"requests": 3, "faulted": 3, "probes": 1}}


def test_a_client_that_was_not_chosen_is_neither_served_nor_counted(server, through, tmp_path):
    with pytest.raises(ConnectionError):
        through("503", source="127.0.0.2")
    assert not (tmp_path / "http.json").exists()
    assert server.seen == []


def test_of_two_clients_each_is_counted_apart(server, tmp_path):
    clients = ("127.0.0.1", "127.0.0.2")
    on = proxy("409", server.server_address[1], tmp_path / "http.json", clients)
    with serving(on) as port:
        for source in ("127.0.0.2", "127.0.0.2", "127.0.0.1"):
            link = http.client.HTTPConnection("127.0.0.1", port, source_address=(source, 0))
            link.request("GET", "/")
            assert link.getresponse().status == 409
            link.close()
    assert {client: one["requests"] for client, one in met(tmp_path).items()} == {
        "127.0.0.1": 1, "127.0.0.2": 2,
    }  # fmt: skip


@pytest.mark.parametrize("kind", ["slow", "lost"])
def test_a_request_that_the_server_did_not_answer_is_not_counted_as_hit(tmp_path, kind):
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        on = proxy(kind, closed.getsockname()[1], tmp_path / "http.json")
        with serving(on) as port:
            link = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
            link.request("GET", "/")
            with pytest.raises(ConnectionResetError):
                link.getresponse()
    assert met(tmp_path) == {"127.0.0.1": {"requests": 1, "faulted": 0, "probes": 0}}


def test_the_rules_send_new_connections_of_these_clients_there_and_reset_their_old_ones():
    assert table(6443, 40000, ["10.0.0.1", "10.0.0.2"]).splitlines() == [
        "*nat",
        ":FENCEPOST-HTTP - [0:0]",
        "-A FENCEPOST-HTTP -s 10.0.0.1 -p tcp --dport 6443 -j REDIRECT --to-ports 40000",
        "-A FENCEPOST-HTTP -s 10.0.0.2 -p tcp --dport 6443 -j REDIRECT --to-ports 40000",
        "COMMIT",
        "*filter",
        ":FENCEPOST-HTTP - [0:0]",
        "-A FENCEPOST-HTTP -s 10.0.0.1 -p tcp --dport 6443 -j REJECT --reject-with tcp-reset",
        "-A FENCEPOST-HTTP -s 10.0.0.2 -p tcp --dport 6443 -j REJECT --reject-with tcp-reset",
        "COMMIT",
    ]


def test_the_family_and_the_proxy_have_the_same_kinds_and_the_same_mark_of_a_probe():
    assert (family.KINDS, family.PROBE) == (httpproxy.KINDS, httpproxy.PROBE)
