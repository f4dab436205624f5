"""Every node that may have chains loses them, whichever request was interrupted."""

from __future__ import annotations

import pytest

from fencepost.nemesis import iptables
from fencepost.nemesis.chains import Chains
from fencepost.nemesis.iptables import Rule


class Site:
    def remote(self, node):
        return node


@pytest.fixture
def there(monkeypatch):
    """The nodes that have chains; `cut` names calls that fail once, halfway through."""
    nodes, cut = set(), []

    def hook(node):
        nodes.add(node)
        fail("hook", node)

    def clear(node):
        fail("clear", node)
        nodes.discard(node)

    def fail(*call):
        if call in cut:
            cut.remove(call)
            raise OSError("the connection was cut")

    monkeypatch.setattr(iptables, "hook", hook)
    monkeypatch.setattr(iptables, "clear", clear)
    monkeypatch.setattr(iptables, "write", lambda node, rules: None)
    return nodes, cut


def test_partly_installed_chains_are_removed_as_well(there):
    nodes, cut = there
    cut.append(("hook", "storage"))
    chains = Chains(Site())
    with pytest.raises(OSError, match="was cut"):
        chains.add("f", {"storage": [Rule("IN", "10.0.0.1", "DROP")]})
    chains.remove("f")
    chains.take_off()
    assert nodes == set()


def test_a_connection_that_is_lost_during_the_removal_is_opened_again(there):
    nodes, cut = there
    chains = Chains(Site())
    chains.add("f", {"storage": [Rule("IN", "10.0.0.1", "DROP")], "redis-1": []})
    chains.remove("f")
    cut.append(("clear", "storage"))
    chains.take_off()
    assert nodes == set()


def test_a_lost_node_does_not_prevent_the_removal_on_others(there):
    nodes, cut = there
    chains = Chains(Site())
    chains.add("f", {node: [Rule("IN", "10.0.0.1", "DROP")] for node in ("a", "b", "c")})
    chains.remove("f")
    cut += [("clear", "b")] * 9
    chains.take_off()
    assert nodes == {"b"}
