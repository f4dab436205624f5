"""A cluster in memory in which each kind of fault takes effect, or has its effect disabled.

`deaf` names the disabled effects: "rules" (packets pass despite iptables), "signals" (they reach
another process), "clock" (no process reads the clock's file, and another process' vDSO is
rewritten), "restart" (a server that was started does not serve).
"""

from __future__ import annotations

import pytest

from fencepost.checker.history.history import History, Op
from fencepost.nemesis import iptables, kill, pause, skewed
from fencepost.nemesis.director import Director
from tests.nemesis.site_in_memory import Site


@pytest.fixture
def network(monkeypatch):
    """Replace iptables on real nodes by nodes in memory."""
    for name, act in {
        "hook": lambda node: None,
        "write": lambda node, rules: node.write(rules),
        "hits": lambda node: dict(node.hits),
        "clear": lambda node: node.write([]),
        "connect": lambda node, ends: node.connect(ends),
        "unsent": lambda node, address: node.unsent if address == "10.0.0.1" else [],
        "send_datagram": lambda node, address: node.send_datagram(address),
    }.items():
        monkeypatch.setattr(iptables, name, act)


@pytest.fixture
def site(monkeypatch, network):
    monkeypatch.setattr(pause, "_STATE_S", 0.01)
    monkeypatch.setattr(iptables, "PROBE_S", 0.01)
    monkeypatch.setattr(kill, "_GONE_S", 0.01)
    monkeypatch.setattr(skewed, "_PATIENCE_S", 0.2)
    return Site()


class Recorded:
    """The ops that a director wrote, and its history."""

    def __init__(self) -> None:
        self.ops: list[Op] = []

    def __call__(self, type, f, value, error):
        self.ops.append(Op(len(self.ops), len(self.ops), "nemesis", type, f, value, error))

    def history(self) -> History:
        return History(list(self.ops))


@pytest.fixture
def recorded():
    return Recorded()


@pytest.fixture
def director(site, recorded):
    return Director(site, recorded)
