"""A server's clock as bounds that always contain its true offset."""

from __future__ import annotations

import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencepost.harness.servers import etcd as etcd_kind
from fencepost.harness.servers import redis as redis_kind
from fencepost.harness.servers import zookeeper as zookeeper_kind
from fencepost.harness.servers.kinds import KINDS
from fencepost.node import clocks, kinds
from fencepost.node.watch import Watch

SHOWN = 1_790_000_000.0


@pytest.fixture(autouse=True)
def shipped(monkeypatch):
    """Every kind's file is already installed here."""
    monkeypatch.setattr(kinds, "find", KINDS.__getitem__)


@pytest.fixture
def etcd(monkeypatch):
    """An etcd whose monotonic clock is off, and which leads unless the test says otherwise."""

    class Etcd:
        offset_s = 0.0
        member, leader = "1", "1"
        lease = None

        def __call__(self, path, body):
            now = time.monotonic() + self.offset_s
            if path == "lease/grant":
                self.lease = now + body["TTL"]
                return {"ID": "7"}, ""
            if path == "lease/timetolive":
                if self.lease is None:
                    return {"ID": "7", "TTL": "-1"}, ""
                # Go truncates towards zero, and the gateway omits a zero.
                left = int(self.lease - now)
                return {"ID": "7", "grantedTTL": "1"} | ({"TTL": str(left)} if left else {}), ""
            return {"leader": self.leader, "header": {"member_id": self.member}}, ""

    found = Etcd()
    monkeypatch.setattr(etcd_kind, "_call", found)
    return found


def look(*arguments):
    found = clocks.command(list(arguments))
    return found.get("low_s"), found.get("high_s"), found.get("hidden")


def since(mark):
    import json

    return look("etcd", "monotonic", "--since", json.dumps(mark))


@pytest.mark.parametrize("offset_s", [0, 0.4, 700, -700, 1e9 + 0.3, 1e9 - 0.3, 1e9 + 1.5])
def test_a_lease_shows_by_how_much_its_leader_s_clock_has_changed(etcd, offset_s):
    mark = clocks.command(["etcd", "monotonic", "--mark"])
    etcd.offset_s = offset_s
    low_s, high_s, _ = since(mark)
    assert low_s <= offset_s <= high_s
    assert high_s - low_s < 2.1 if abs(offset_s - 1e9) < 1 else high_s - low_s < 1.1


def test_a_follower_and_a_lost_lease_show_nothing(etcd):
    mark = clocks.command(["etcd", "monotonic", "--mark"])
    etcd.lease = None
    assert (
        since(mark)[2] == "the lease through which etcd showed its monotonic clock no longer exists"
    )
    etcd.leader = "2"
    assert "only etcd's leader" in since(mark)[2]
    assert "only etcd's leader" in clocks.command(["etcd", "monotonic", "--mark"])["hidden"]


def test_a_clock_that_no_server_shows_is_reported_as_hidden():
    assert look("redis", "monotonic")[2] == "redis does not show a monotonic clock"


@given(st.integers(-(10**15), 10**15), st.sampled_from([0, 10**6, 10**9]))
def test_the_shown_time_lies_within_the_bounds_at_any_truncation(offset_ns, grain_ns):
    watch = Watch(time.CLOCK_MONOTONIC)
    shown_ns = time.monotonic_ns() + offset_ns
    shown_ns -= shown_ns % grain_ns if grain_ns else 0
    bounds = watch.bounds(shown_ns, grain_ns)
    assert bounds["low_s"] - 1e-6 <= offset_ns / 1e9 <= bounds["high_s"] + 1e-6


def test_redis_is_asked_for_its_time(monkeypatch):
    import socket

    server = socket.create_server(("127.0.0.1", 0))

    def serve():
        link, _ = server.accept()
        link.recv(100)
        second, micro = divmod(time.time_ns() // 1000 + 5 * 10**6, 10**6)
        answer = f"*2\r\n${len(str(second))}\r\n{second}\r\n${len(str(micro))}\r\n{micro}\r\n"
        for octet in answer.encode():
            link.send(bytes([octet]))
        link.close()

    thread = threading.Thread(target=serve)
    thread.start()
    real = socket.create_connection
    monkeypatch.setattr(
        redis_kind.socket,
        "create_connection",
        lambda address, timeout: real(server.getsockname(), timeout),
    )
    low_s, high_s, _ = look("redis", "wall")
    thread.join()
    server.close()
    assert low_s <= 5 <= high_s < low_s + 1


def test_zookeeper_is_asked_for_its_side_of_our_own_connection(monkeypatch):
    class Session:
        def __init__(self):
            self.said = []

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def sendall(self, octets):
            self.said.append(octets)

        def recv(self, size):
            return bytes.fromhex("00000025 00000000 00002710") + bytes(28)

        def getsockname(self):
            return ("127.0.0.1", 40001)

    monkeypatch.setattr(zookeeper_kind.socket, "create_connection", lambda *_: Session())
    now_ms = int(time.time() * 1000) + 60_000
    listed = (
        f" /127.0.0.1:40000[1](queued=0,recved=1,sent=1,est=1,to=10000,lresp=5)\n"
        f" /127.0.0.1:40001[1](queued=0,recved=1,sent=1,sid=0x1,est={now_ms},to=10000,lresp=9)\n"
        " /127.0.0.1:40002[0](queued=0,recved=1,sent=0)\n"
    )
    monkeypatch.setattr(zookeeper_kind, "_four_letters", lambda word: listed)
    low_s, high_s, _ = look("zookeeper", "wall")
    assert 59.9 < low_s <= high_s < 60.1


def test_the_node_s_own_clocks_differ_as_a_client_s_do():
    own = clocks.command(["node", "wall"])
    assert own["low_ns"] <= time.time_ns() - time.monotonic_ns() + 10**6
    assert 0 <= own["high_ns"] - own["low_ns"] < 10**8
