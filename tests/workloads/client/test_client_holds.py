"""A client's memory of its holds is bounded; how it gives a hold up."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from types import SimpleNamespace

import pytest

from fencepost.workloads.client import holds
from fencepost.workloads.client.client import Client
from fencepost.workloads.client.failpoints import Failpoints
from fencepost.workloads.client.holds import Holds
from fencepost.workloads.client.wire import Outbox, Setup
from fencepost.workloads.contract.lock import Grant


@pytest.fixture
def out(tmp_path):
    setup = Setup(
        process=1, stride=5, node="client-1", lock="none", options={}, servers=["s"],
        addresses={"storage": ("127.0.0.1", 1)}, storage="storage", guard="none", seed="1",
        origin_ns=0,
    )  # fmt: skip
    fd = os.open(tmp_path / "said", os.O_WRONLY | os.O_CREAT)
    out = Outbox(fd, setup)
    out._setup_of_test = setup
    yield out
    os.close(fd)


def grant(number):
    return Grant("orders", None, None, f"secret-{number}")


def test_lost_and_released_holds_are_forgotten(out):
    held = Holds(out)
    for number in range(100):
        held.add(f"1-{number}", grant(number))
        held.lost(f"secret-{number}", "its lease is over")
        assert held.is_lost(grant(number))
        held.remove(f"1-{number}")
    assert (held._lost, held._grants, held._names) == ({}, {}, {})


def test_of_unanswered_acquires_the_latest_are_remembered(out, monkeypatch):
    monkeypatch.setattr(holds, "_LOST", 10)
    held = Holds(out)
    for number in range(100):
        held.lost(f"secret-{number}", "it was over before it was granted")
    assert len(held._lost) == 10
    assert held.is_lost(grant(99))


def test_a_waiting_client_reports_that_its_grant_cannot_come_or_retries(out, tmp_path):
    held = Holds(out)
    held.expired("nobody waits")
    held.waits_for("orders")
    held.expired("its lease is gone")
    held.requeued("the connection is SUSPENDED")
    held.waits_for(None)
    held.requeued("nobody waits any more")
    said = [json.loads(line) for line in (tmp_path / "said").read_text().splitlines()]
    assert [(op["f"], op["value"], op["error"]) for op in said] == [
        ("lost", {"lock": "orders", "hold": None}, ["expired", "its lease is gone"]),
        ("lost", {"lock": "orders", "hold": None}, ["requeued", "the connection is SUSPENDED"]),
    ]


@pytest.fixture
def client(out, tmp_path, monkeypatch):
    """A client with one hold, and its events."""
    client = Client(out._setup_of_test, out, Failpoints(out))
    said = tmp_path / "said"

    def give_up(deadline_in, left=10**9, lost=False):
        held = client._holds
        deadline = None if deadline_in is None else out.now() + deadline_in
        held.add("1-1", replace(grant(1), deadline=deadline))
        if lost:
            held.lost("secret-1", "the lock says so")
        type, value = client.give_up({"lock": "orders", "hold": "1-1", "left": left})
        out.flush()
        events = [json.loads(line) for line in said.read_text().splitlines()]
        return type, value["lost"], [(e["f"], e["type"], e["value"]["hold"]) for e in events]

    return give_up


LOST = ("lost", "info", "1-1")


def test_a_holder_whose_lease_is_about_to_expire_reports_the_loss(client):
    assert client(deadline_in=10**8) == ("ok", True, [LOST])


def test_a_holder_with_a_renewed_or_endless_lease_does_not(client):
    assert client(deadline_in=10**10) == ("ok", False, [])
    assert client(deadline_in=None) == ("ok", False, [])


def test_an_event_that_the_lock_has_sent_is_not_sent_again(client):
    assert client(deadline_in=None, lost=True) == ("ok", True, [LOST])


@pytest.mark.parametrize("assumed", [True, False])
def test_a_grant_and_its_extension_say_whether_their_deadline_was_assumed(out, tmp_path, assumed):
    client = Client(out._setup_of_test, out, Failpoints(out))
    answer = replace(grant(1), deadline=10**9, assumed=assumed)
    client._lock = SimpleNamespace(acquire=lambda *_: answer, extend=lambda *_: answer)
    _, granted = client.apply("acquire", {"lock": "orders", "ttl": 10**9})
    client.apply("extend", {"lock": "orders", "hold": granted["hold"], "ttl": 10**9})
    out.flush()
    said = [json.loads(line) for line in (tmp_path / "said").read_text().splitlines()]
    found = [event["value"].get("assumed", False) for event in said if event["type"] == "ok"]
    assert found == [assumed, assumed]
