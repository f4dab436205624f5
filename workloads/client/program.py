"""The program of one client: ops in, events out, one JSON object a line (docs/protocol.md).

The first line says who it is, which servers and lock (wire.Setup), and is answered `ready`. Then
come ops and orders (orders.py), until standard input ends: the harness is gone then, and so is the
test.
"""

from __future__ import annotations

import os

import msgspec

from fencepost.workloads.client import loop
from fencepost.workloads.client.client import Client
from fencepost.workloads.client.failpoints import Failpoints
from fencepost.workloads.client.orders import Orders
from fencepost.workloads.client.wire import Inbox, NoMoreOrders, Outbox, Setup
from fencepost.workloads.critical_section import work_seed


def main() -> None:
    inbox = Inbox(0)
    try:
        setup = msgspec.convert(inbox.take(None), Setup)
    except NoMoreOrders:
        return
    out = Outbox(1, setup)
    failpoints = Failpoints(out)
    client = Client(setup, out, failpoints)
    orders = Orders(inbox, out, failpoints)
    out.answer("ready", pid=os.getpid())
    try:
        _serve(client, orders, out, work_seed(setup.seed, setup.process))
    except NoMoreOrders:
        client.close()
        out.flush()


def _serve(client: Client, orders: Orders, out: Outbox, seed: str) -> None:
    """Do what is asked, until NoMoreOrders is raised."""
    while True:
        order = orders.take(None)
        assert order is not None
        if "f" in order:
            client.apply(order["f"], order.get("value", {}))
            out.flush()
        elif order["control"] == "work":
            loop.work(client, orders, out, order, seed)


if __name__ == "__main__":
    main()
