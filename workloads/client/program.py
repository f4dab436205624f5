"""The program of one client: ops in, events out, one JSON object a line (docs/protocol.md).

The first line sets the client's identity, servers and lock (wire.Setup), and is answered `ready`.
Ops and orders (orders.py) follow, until standard input ends, because the harness and the test have
ended.
"""

from __future__ import annotations

import os
import sys
import threading
import traceback
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, NoReturn

import msgspec

from fencepost.workloads.client import loop, reigns, sockets, succession
from fencepost.workloads.client.cancelling import Cancelling
from fencepost.workloads.client.client import Client
from fencepost.workloads.client.critical_section import work_seed
from fencepost.workloads.client.endless import Endless
from fencepost.workloads.client.failpoints import Failpoints
from fencepost.workloads.client.orders import Orders
from fencepost.workloads.client.steps import Steps, Stops
from fencepost.workloads.client.succession import Succession
from fencepost.workloads.client.wire import Inbox, NoMoreOrders, Outbox, Own, Setup
from fencepost.workloads.contract.lock import BadAnswer


def main() -> None:
    heritage = succession.inherited()
    inbox = Inbox(0, heritage.heard if heritage else b"")
    try:
        setup = heritage.setup if heritage else msgspec.convert(inbox.take(None), Setup)
    except NoMoreOrders:
        return
    out = Outbox(_standard_output(), setup)
    failpoints = Failpoints(out)
    if heritage:
        succession.begin(heritage, out, failpoints)
    threading.excepthook = partial(_of_a_thread, out)
    following = Succession(setup, inbox, out, failpoints)
    # An elector runs in a thread of its own. `exec` would keep the timer.
    if setup.own is not None and setup.stops is None:
        Endless(setup.own, setup.node, lambda: out.events, partial(_end, out))
    try:
        steps = _counted(setup, failpoints) if setup.steps else None
        client = Client(setup, out, failpoints, steps=steps, replace=following.replace)
    except Exception as error:
        if setup.own is None:
            raise
        _break(out, cannot_be_made(setup.own, setup.node, error))
    orders = Orders(inbox, out, failpoints)
    Cancelling(client, out, Random(f"{setup.seed}/{setup.process}/cancel"))
    worker = _Worker(client, orders, out, setup, following)
    try:
        if heritage is None:
            more = {} if client.extends else {"extends": False}
            out.answer("ready", pid=os.getpid(), **more)
        elif heritage.working:
            worker.work(heritage.working)
        worker.serve()
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


def _end(out: Outbox, why: str) -> NoReturn:
    """Exit from a lock that does not terminate, whatever exceptions it catches."""
    out.answer("broken", why=why)
    os._exit(1)


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


@dataclass(frozen=True)
class _Worker:
    client: Client
    orders: Orders
    out: Outbox
    setup: Setup
    following: Succession

    def serve(self) -> None:
        """Serve requests until NoMoreOrders is raised."""
        while True:
            order = self.orders.take(None)
            assert order is not None
            if "f" in order:
                self.client.apply(order["f"], order.get("value", {}))
                self.out.flush()
            elif order["control"] == "work":
                self.work(order)

    def work(self, order: dict[str, Any]) -> None:
        parts = self.client, self.orders, self.out, order
        seed = work_seed(self.setup.seed, self.setup.process)
        if self.client.elects:
            reigns.work(*parts, seed, self.following, self.setup.stops)
        else:
            loop.work(*parts, seed)


def _of_a_thread(out: Outbox, raised: threading.ExceptHookArgs) -> None:
    """Handle an exception that ended a thread. A BadAnswer is a mistake of the client, wherever it
    shows; the main thread may wait for long."""
    if not isinstance(raised.exc_value, BadAnswer):
        threading.__excepthook__(raised)
        return
    traceback.print_exception(raised.exc_value)
    out.answer("broken", why=str(raised.exc_value))
    os._exit(1)


if __name__ == "__main__":
    main()
