"""The program of one client: ops in, events out, one JSON object a line (docs/protocol.md).

The first line sets the client's identity, servers and lock (wire.Setup), and is answered `ready`.
Ops and orders (orders.py) follow, until standard input ends, because the harness and the test have
ended.
"""

from __future__ import annotations

import os
import sys
import traceback
from pathlib import Path
from random import Random
from typing import NoReturn

import msgspec

from fencepost.workloads.client import loop, sockets
from fencepost.workloads.client.cancelling import Cancelling
from fencepost.workloads.client.client import Client
from fencepost.workloads.client.critical_section import work_seed
from fencepost.workloads.client.failpoints import Failpoints
from fencepost.workloads.client.orders import Orders
from fencepost.workloads.client.steps import Steps, Stops
from fencepost.workloads.client.wire import Inbox, NoMoreOrders, Outbox, Own, Setup
from fencepost.workloads.locks.plain import BadAnswer


def main() -> None:
    inbox = Inbox(0)
    try:
        setup = msgspec.convert(inbox.take(None), Setup)
    except NoMoreOrders:
        return
    out = Outbox(_standard_output(), setup)
    failpoints = Failpoints(out)
    try:
        steps = _counted(setup, failpoints) if setup.steps else None
        client = Client(setup, out, failpoints, steps=steps)
    except Exception as error:
        if setup.own is None:
            raise
        _break(out, cannot_be_made(setup.own, setup.node, error))
    orders = Orders(inbox, out, failpoints)
    Cancelling(client, out, Random(f"{setup.seed}/{setup.process}/cancel"))
    out.answer("ready", pid=os.getpid(), **({} if client.extends else {"extends": False}))
    try:
        _serve(client, orders, out, work_seed(setup.seed, setup.process))
    except NoMoreOrders:
        client.close()
        out.flush()
    except BadAnswer as error:
        _break(out, str(error))


def _counted(setup: Setup, failpoints: Failpoints) -> Steps:
    """A failpoint before each step of an op."""
    own = setup.own is not None or _brings_its_own(setup.lock)
    steps = Steps(Stops(failpoints, replies=own))
    if own:
        servers = {name: setup.addresses[name] for name in setup.servers}
        sockets.count(sockets.Sockets(steps), servers)
    return steps


def _brings_its_own(lock: str) -> bool:
    """Return whether a lock of the registry opens connections to Redis itself, as a library
    does."""
    from fencepost.workloads.locks.registry import LOCKS

    return bool(LOCKS[lock].library) and LOCKS[lock].kind == "redis"


def _standard_output() -> int:
    """Reserve standard output for events: output of a library goes to standard error."""
    ours = os.dup(1)
    os.dup2(2, 1)
    return ours


def _break(out: Outbox, why: str) -> NoReturn:
    """Exit because the client itself is faulty, not its lock; this ends the run."""
    traceback.print_exc()
    out.answer("broken", why=why)
    sys.exit(1)


def cannot_be_made(own: Own, node: str, error: Exception) -> str:
    """Describe why a user lock cannot be imported or made, with the place in its files."""
    text = str(error) or "no reason given"
    if isinstance(error, BadAnswer):
        return text
    frames = traceback.extract_tb(error.__traceback__)
    theirs = [frame for frame in frames if Path(frame.filename).is_relative_to(own.folder)]
    where = ""
    if theirs:
        file = Path(theirs[-1].filename).relative_to(own.folder)
        where = f", at {file}, line {theirs[-1].lineno}: {theirs[-1].line}"
    hint = ""
    if isinstance(error, ImportError):
        hint = ". Name packages that it needs, other than the client's own, with --requirements"
    return f"{own.lock} cannot be made on {node}: {type(error).__name__}: {text}{where}{hint}"


def _serve(client: Client, orders: Orders, out: Outbox, seed: str) -> None:
    """Serve requests until NoMoreOrders is raised."""
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
