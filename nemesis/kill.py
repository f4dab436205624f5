"""Crashes: SIGKILL of a server or of a client, and its restart.

What a server still knows afterwards is what its persistence kept. The fault ends when the
server serves again; a client's successor is a new process with a new number.
"""

from __future__ import annotations

import signal
import time
from random import Random
from typing import Any

from nemesis.nemesis import Fault, Receipt
from nemesis.site import Site

_GONE_S = 5.0


class Kill:
    def __init__(self, site: Site) -> None:
        self._site = site

    def inject(self, fault: Fault) -> Receipt:
        (node,) = fault.targets
        if node in self._site.clients:
            return self._kill_client(node)
        pid = self._site.server(node).kill()
        if pid is None:
            return Receipt(False, f"no server was there on {node}")
        gone = self._site.remote(node).state(pid) is None
        return Receipt(
            gone, f"pid {pid} on {node} is {'gone' if gone else 'still there'}", {"pid": pid}
        )

    def _kill_client(self, node: str) -> Receipt:
        client, remote = self._site.client(node), self._site.remote(node)
        remote.signal(client.pid, signal.SIGKILL)
        end = time.monotonic() + _GONE_S
        while remote.state(client.pid) is not None and time.monotonic() < end:
            time.sleep(0.005)
        gone = remote.state(client.pid) is None
        client.wait_gone(_GONE_S)
        return Receipt(
            gone,
            f"pid {client.pid} on {node} is {'gone' if gone else 'still there'}",
            {"pid": client.pid, "processes": [client.process]},
        )

    def heal(self, fault: Fault) -> Receipt:
        (node,) = fault.targets
        if node in self._site.clients:
            client = self._site.restart_client(node)
            return Receipt(
                True,
                f"process {client.process} follows, pid {client.pid} on {node}",
                {"pid": client.pid},
            )
        server = self._site.server(node)
        server.start()
        server.wait_ready()
        pid = server.pid()
        return Receipt(True, f"{node} serves again, pid {pid}", {"pid": pid})


def draw(
    random: Random, servers: list[str], clients: list[str], restart_s: float
) -> tuple[list[str], dict[str, Any]]:
    """A server three times as often as a client; `restart_s` is how long a server stays down."""
    if random.random() < 0.25:
        node = random.choice(clients)
        return [node], {"words": f"{node} is killed"}
    node = random.choice(servers)
    return [node], {"restart_s": restart_s, "words": f"{node} crashes"}
