"""Writes the rules of all active faults into each node's chains.

A node's chains are always written completely, from the active faults: no rule of a healed fault can
outlive the next change, and rules of other programs are never touched.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from fencepost.nemesis import iptables
from fencepost.nemesis.iptables import Rule
from fencepost.nemesis.nemesis import Leftover
from fencepost.nemesis.site import Remote, Server, Site

Rules = Mapping[str, Sequence[Rule]]
"""For each node the rules to add to its chains."""
PROBES = 4
"""How often a way is probed until a probe proves something: on a busy machine, to begin one may
take as long as it waits for an answer."""
_TAKEN_OFF = 2
"""How often a node is asked to remove them."""


class Chains:
    def __init__(self, site: Site) -> None:
        self._site = site
        self._lock = threading.Lock()
        self._on: dict[str, Rules] = {}
        self._counts: dict[str, Rules] = {}
        self._owed: dict[str, list[str]] = {}
        self._lost: dict[str, list[Rule]] = defaultdict(list)
        self._lossy: dict[str, str] = {}
        # Counts of rules of one connection, or of a part of the packets, before chains were
        # rewritten, which resets them to 0.
        self._met: dict[str, Counter[Rule]] = defaultdict(Counter)
        self._ready: set[str] = set()
        self._seen: set[str] = set()

    def add(self, fault: str, rules: Rules, counts: Rules | None = None) -> None:
        """Add a fault's rules. `counts`: those that count the packets that no rule has dropped."""
        with self._lock:
            self._on[fault] = rules
            self._counts[fault] = counts or {}
            self._write({*rules, *self._counts[fault]})

    def remove(self, fault: str) -> None:
        with self._lock:
            self._lossy.pop(fault, None)
            rules, counts = self._on.pop(fault, {}), self._counts.pop(fault, {})
            # Until all are written: if a node does not answer, a later removal must find the nodes
            # that had the rules.
            nodes = self._owed.setdefault(fault, [*rules, *counts])
            self._write(set(nodes))
            del self._owed[fault]

    def lose(self, rules: Rules) -> None:
        """Drop these packets until the chains are removed: the end of a fault does not restore
        them."""
        with self._lock:
            for node, those in rules.items():
                self._lost[node] += those
            self._write(list(rules))

    def take_off(self) -> None:
        """Remove the chains from every node that has some, unless a fault is active."""
        with self._lock:
            if self._on:
                return
            nodes, self._ready, self._seen = self._seen, set(), set()
            self._lost.clear()
            for node in nodes:
                # A connection that was cut is reopened for the next request. A node that is gone
                # has no chains.
                for _ in range(_TAKEN_OFF):
                    with contextlib.suppress(Exception):
                        iptables.clear(self._site.remote(node))
                        break

    def forget(self, node: str) -> None:
        """Forget the chains of a node, whose network may be another one by now."""
        with self._lock:
            self._ready.discard(node)

    def loses(self, fault: str, node: str) -> None:
        """Note that a fault loses a part of what this node sends, until its rules are removed."""
        with self._lock:
            self._lossy[fault] = node

    def disturbed(self, one: str, other: str) -> bool:
        """Return whether an active fault drops packets between these two, all or a part of them."""
        return bool({one, other} & {*self._lossy.values()}) or self.cut(one, other)

    def cut(self, one: str, other: str) -> bool:
        """Return whether an active fault drops all packets between these two, one way or both."""
        with self._lock:
            return any(
                rule.address == self._site.address(far) and rule.share == 1
                for rules in self._on.values()
                for near, far in ((one, other), (other, one))
                for rule in rules.get(near, ())
            )

    def hits(self, node: str) -> dict[Rule, int]:
        """Return how many packets each rule of the node met since its chains were last written;
        rules of one connection or of a part of the packets, since they were added."""
        now = iptables.hits(self._site.remote(node))
        return {rule: many + self._met[node][rule] for rule, many in now.items()}

    def _write(self, nodes: Collection[str]) -> None:
        if nodes:
            with ThreadPoolExecutor(len(nodes)) as pool:
                list(pool.map(self._write_one, nodes))

    def _write_one(self, node: str) -> None:
        remote = self._site.remote(node)
        if node not in self._ready:
            self._seen.add(node)  # half of it may have been applied, if this fails
            iptables.hook(remote)
            self._ready.add(node)
        of_all = (self._lost, *self._on.values(), *self._counts.values())
        if any(_adds_up(rule) for rules in self._on.values() for rule in rules.get(node, ())):
            met = iptables.hits(remote)
            self._met[node].update({rule: many for rule, many in met.items() if _adds_up(rule)})
        iptables.write(remote, [rule for rules in of_all for rule in rules.get(node, ())])


def _adds_up(rule: Rule) -> bool:
    return bool(rule.port) or rule.share < 1


def leftovers(remote: Remote, server: Server | None) -> list[Leftover]:
    if not iptables.there(remote):
        return []
    return [
        Leftover(
            "fencepost's iptables chains exist",
            "removed fencepost's iptables chains",
            partial(iptables.clear, remote),
        )
    ]


def probe(site: Site, source: str, targets: list[str]) -> dict[str, str]:
    """Try a new TCP connection from `source` to each target's server (iptables.connect)."""
    ends = {node: (site.address(node), site.port(node)) for node in targets}
    return iptables.connect(site.remote(source), ends)


def datagram(site: Site, chains: Chains, source: str, to: str) -> str:
    """Send one datagram; return "dropped" by a rule where it arrived, "passed", or "lost"."""
    rules = {
        "dropped": Rule("IN", site.address(source), "DROP"),
        "passed": Rule("IN", site.address(source), ""),
    }
    before = chains.hits(to)
    iptables.send_datagram(site.remote(source), site.address(to))
    end = time.monotonic() + iptables.PROBE_S
    while True:
        after = chains.hits(to)
        for what, rule in rules.items():
            if after.get(rule, 0) > before.get(rule, 0):
                return what
        if time.monotonic() > end:
            return "lost"
