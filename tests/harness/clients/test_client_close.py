"""A client whose process died closes its connection before it continues as another process."""

from __future__ import annotations

import json
import os
from dataclasses import replace

import msgspec
import pytest

from fencepost.workloads.client import client as clients
from fencepost.workloads.client.failpoints import Failpoints
from fencepost.workloads.client.wire import Outbox, Setup
from fencepost.workloads.contract.lock import Indeterminate
from fencepost.workloads.locks import registry
from fencepost.workloads.locks.broken import NoLock
from tests.harness.talk import ACQUIRE


class Doubtful:
    """Its releases have an unknown outcome; closing it calls `closing`."""

    closing = staticmethod(lambda: None)

    def __init__(self, env, nodes, options):
        self.env = env

    def acquire(self, name, ttl_ns):
        return NoLock(self.env, token=1).acquire(name, ttl_ns)

    def release(self, grant):
        raise Indeterminate("timeout", "no reply")

    def close(self):
        self.closing()


@pytest.fixture
def client(setup, monkeypatch):
    """A client in this process, its outbox, and its output since the last call."""
    doubtful = replace(registry.LOCKS["broken-always-yes"], make=Doubtful)
    monkeypatch.setattr(registry, "LOCKS", {doubtful.name: doubtful})
    out, into = os.pipe()
    os.set_blocking(out, False)

    def said():
        try:
            return [json.loads(line) for line in os.read(out, 65536).splitlines()]
        except BlockingIOError:
            return []

    told = msgspec.convert(setup, Setup, strict=False)
    outbox = Outbox(into, told)
    yield clients.Client(told, outbox, Failpoints(outbox)), outbox, said
    os.close(out)
    os.close(into)


def go_unknown(client, out):
    """A release of unknown outcome, which ends the process."""
    _, granted = client.apply("acquire", ACQUIRE["value"])
    assert client.apply("release", {"lock": "orders", "hold": granted["hold"]})[0] == "info"
    out.flush()


def test_a_close_is_reported_before_it_starts(client, monkeypatch):
    client, out, said = client
    before = []
    monkeypatch.setattr(Doubtful, "closing", lambda self: before.extend(said()))
    go_unknown(client, out)
    assert [(op["f"], op["type"]) for op in before[-2:]] == [
        ("release", "info"),
        ("close", "invoke"),
    ]
    assert [(op["f"], op["type"], op["process"]) for op in said()] == [("close", "ok", 3)]


@pytest.mark.parametrize(
    ("raised", "error"),
    [
        (Indeterminate("timeout", "the session's end got no reply"),
         ["timeout", "the session's end got no reply"]),
        (OSError("no such socket"), ["raised", "OSError('no such socket')"]),
    ],
)  # fmt: skip
def test_a_close_that_raises_is_info_and_the_client_continues(client, monkeypatch, raised, error):
    client, out, said = client

    def fail(self):
        raise raised

    store_closed = []
    monkeypatch.setattr(Doubtful, "closing", fail)
    monkeypatch.setattr(client._resource, "close", lambda: store_closed.append(True))
    go_unknown(client, out)
    close = said()[-2:]
    assert [(op["f"], op["type"], op["process"]) for op in close] == [
        ("close", "invoke", 3),
        ("close", "info", 3),
    ]
    assert close[1]["error"] == error
    assert store_closed == [True]
    assert client.apply("acquire", ACQUIRE["value"])[0] == "ok"
    out.flush()
    assert {op["process"] for op in said()} == {8}


def test_events_of_the_old_lock_during_its_close_belong_to_the_old_process_and_later_ones_to_none(
    client, monkeypatch
):
    client, out, said = client
    secrets, envs = [], []

    def acquire(self, name, ttl_ns):
        grant = NoLock(self.env, token=1).acquire(name, ttl_ns)
        secrets.append(grant.secret)
        envs.append(self.env)
        return grant

    def tell(self):
        self.env.lost(secrets[0], "the session is closed")

    monkeypatch.setattr(Doubtful, "acquire", acquire)
    monkeypatch.setattr(Doubtful, "closing", tell)
    _, granted = client.apply("acquire", ACQUIRE["value"])
    client.apply("acquire", ACQUIRE["value"])
    go_unknown(client, out)
    envs[0].lost(secrets[1], "too late")
    envs[0].renewed(secrets[1], 10**18)
    out.flush()
    lost = [op for op in said() if op["f"] in ("lost", "renewed")]
    assert [(op["process"], op["value"]["hold"]) for op in lost] == [(3, granted["hold"])]
