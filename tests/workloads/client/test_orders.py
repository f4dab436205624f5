"""A client receives orders in the middle of an op before it stops itself."""

from __future__ import annotations

import os

import msgspec
import pytest

from fencepost.workloads.client import failpoints
from fencepost.workloads.client.failpoints import Failpoints
from fencepost.workloads.client.orders import Orders
from fencepost.workloads.client.wire import Inbox, NoMoreOrders, Outbox, Setup

SETUP = {
    "process": 0, "stride": 1, "node": "client-1", "lock": "none", "options": {}, "servers": [],
    "addresses": {}, "storage": "storage", "store": "redis", "write_script": "", "guard": "none",
    "seed": "1", "origin_ns": 0,
}  # fmt: skip


@pytest.fixture
def client(monkeypatch):
    """A client's failpoints and orders, a way to send it more, and how often it stopped itself."""
    stopped: list[int] = []
    monkeypatch.setattr(failpoints.os, "kill", lambda pid, number: stopped.append(number))
    ours, theirs = os.pipe()
    nowhere = os.open(os.devnull, os.O_WRONLY)
    out = Outbox(nowhere, msgspec.convert(SETUP, Setup))
    points = Failpoints(out)
    orders = Orders(Inbox(ours), out, points)

    def send(**message: str) -> None:
        os.write(theirs, msgspec.json.encode(message) + b"\n")

    yield points, orders, send, stopped
    for file in (ours, theirs, nowhere):
        os.close(file)


def test_a_failpoint_that_was_disarmed_in_the_middle_of_the_op_stops_nothing(client):
    points, orders, send, stopped = client
    send(control="arm", point="acquired")
    assert orders.take(0) is None and points.is_armed("acquired")
    # The client is in an op from here on, and takes no order.
    send(control="disarm", point="acquired")
    points.reach("acquired")
    assert stopped == [] and not points.is_armed("acquired")


def test_one_that_is_armed_stops_once_and_other_orders_stay_in_their_order(client):
    points, orders, send, stopped = client
    send(control="arm", point="acquired")
    assert orders.take(0) is None
    send(control="rest")
    send(control="arm", point="before-write")
    send(f="acquire")
    points.reach("acquired")
    points.reach("acquired")
    assert len(stopped) == 1 and points.is_armed("before-write")
    assert orders.take(0) == {"control": "rest"}
    assert orders.take(0) == {"f": "acquire"}


def test_the_end_of_orders_is_no_order_and_is_seen_by_the_reader(monkeypatch):
    ours, theirs = os.pipe()
    os.write(theirs, b'{"control":"rest"}\n')
    os.close(theirs)
    inbox = Inbox(ours)
    inbox.sift(lambda order: False)
    assert inbox.take(0) == {"control": "rest"}
    with pytest.raises(NoMoreOrders):
        inbox.take(0)
    os.close(ours)
