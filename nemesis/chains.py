"""iptables rules on the nodes, in two chains of fencepost's own.

A node's chains are always written as a whole, from the faults that are on: what one fault
leaves behind cannot outlive the next change, and nobody else's rule is ever touched.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import pairwise

from fencepost.nemesis.leftover import Leftover
from fencepost.nemesis.site import Remote, Server, Site

CHAINS = {"INPUT": "FENCEPOST-IN", "OUTPUT": "FENCEPOST-OUT"}

# How long a probe waits for an answer to its SYN; on one machine an answer takes well under 1 ms.
PROBE_S = 0.25

Rules = Mapping[str, list[str]]
"""For each node the rules to add to its chains, each as '<IN or OUT> <match> -j <target>'."""

# UDP's discard service (RFC 863): nobody listens there, and nothing else is sent to it.
_DISCARD = 9


class Chains:
    def __init__(self, site: Site) -> None:
        self._site = site
        self._lock = threading.Lock()
        self._on: dict[str, Rules] = {}
        self._counted: dict[str, Mapping[str, list[str]]] = {}
        self._owed: dict[str, list[str]] = {}
        self._ready: set[str] = set()

    def add(self, fault: str, rules: Rules, counted: Mapping[str, list[str]] | None = None) -> None:
        """Put a fault's rules on. `counted`: for each node those whose datagrams it is to count
        when nothing has dropped them."""
        with self._lock:
            self._on[fault] = rules
            self._counted[fault] = counted or {}
            self._write({*rules, *self._counted[fault]})

    def remove(self, fault: str) -> None:
        with self._lock:
            rules, counted = self._on.pop(fault, {}), self._counted.pop(fault, {})
            # Until all are written: where a node does not answer, whoever removes the fault once
            # more must find the nodes that it was on.
            nodes = self._owed.setdefault(fault, [*rules, *counted])
            self._write(set(nodes))
            del self._owed[fault]

    def take_off(self) -> None:
        """Take the chains off every node that has some, unless a fault is on."""
        with self._lock:
            if self._on:
                return
            nodes, self._ready = self._ready, set()
            for node in nodes:
                with contextlib.suppress(Exception):  # a node that is gone has none
                    clear(self._site.remote(node))

    def cut(self, one: str, other: str) -> bool:
        """Whether a fault that is on drops anything between these two."""
        with self._lock:
            return any(
                self._site.address(far) in rule.split()
                for rules in self._on.values()
                for near, far in ((one, other), (other, one))
                for rule in rules.get(near, ())
            )

    def hits(self, node: str) -> dict[tuple[str, str, str], int]:
        """How many packets the node's rules met since they were last written.

        By chain (IN, OUT), the other node's address, and what becomes of them: DROP, REJECT, or
        "" where they are only counted.
        """
        found: dict[tuple[str, str, str], int] = {}
        for short, chain in zip(("IN", "OUT"), CHAINS.values(), strict=True):
            listed = self._site.remote(node).run(["iptables", "-w", "-v", "-S", chain]).out
            for line in listed.splitlines():
                words = line.split()
                if words[0] != "-A":
                    continue
                after = dict(pairwise(words))
                address = (after.get("-s") or after.get("-d") or "").partition("/")[0]
                key = (short, address, after.get("-j", ""))
                found[key] = found.get(key, 0) + int(after.get("-c", "0"))
        return found

    def _write(self, nodes: Collection[str]) -> None:
        if nodes:
            with ThreadPoolExecutor(len(nodes)) as pool:
                list(pool.map(self._write_one, nodes))

    def _write_one(self, node: str) -> None:
        remote = self._site.remote(node)
        if node not in self._ready:
            _hook(remote)
            self._ready.add(node)
        rules = [rule for on in self._on.values() for rule in on.get(node, [])]
        rules += [
            f"IN -s {self._site.address(peer)} -p udp --dport {_DISCARD}"
            for counted in self._counted.values()
            for peer in counted.get(node, [])
        ]
        lines = "\n".join(f"-A FENCEPOST-{rule}" for rule in rules)
        heads = "\n".join(f":{chain} - [0:0]" for chain in CHAINS.values())
        # Naming a chain in the head empties it; the whole table changes in one step.
        table = f"*filter\n{heads}\n{lines}\nCOMMIT\n"
        remote.run(["bash", "-c", f"iptables-restore -w --noflush <<'E'\n{table}E"])


def _hook(remote: Remote) -> None:
    steps = [
        f"iptables -w -N {own} 2>/dev/null; "
        f"iptables -w -C {chain} -j {own} 2>/dev/null || iptables -w -I {chain} -j {own}"
        for chain, own in CHAINS.items()
    ]
    remote.run(["bash", "-c", "; ".join(steps)])


def clear(remote: Remote) -> None:
    """Take fencepost's chains off a node, whoever put them there."""
    steps = [
        f"iptables -w -D {chain} -j {own} 2>/dev/null; "
        f"iptables -w -F {own} 2>/dev/null; iptables -w -X {own} 2>/dev/null"
        for chain, own in CHAINS.items()
    ]
    remote.run(["bash", "-c", "; ".join(steps) + "; true"])


def leftovers(remote: Remote, server: Server | None) -> list[Leftover]:
    listed = remote.run(["iptables", "-w", "-S"]).out
    if not any(f"-j {chain}" in listed or f"-N {chain}" in listed for chain in CHAINS.values()):
        return []
    return [
        Leftover(
            "fencepost's iptables chains are there",
            "took fencepost's iptables chains away",
            partial(clear, remote),
        )
    ]


def probe(site: Site, source: str, targets: list[str]) -> dict[str, str]:
    """What a new TCP connection from `source` to each target's server meets.

    "open" (accepted), "refused" (the packets pass, nobody listens) or "silent" (no answer).
    """
    script = "".join(
        f"(timeout {PROBE_S} bash -c 'exec 3<>/dev/tcp/{site.address(node)}/{site.port(node)}' "
        f"2>/dev/null; echo {node} $?) & "
        for node in targets
    )
    words = {"0": "open", "1": "refused", "124": "silent"}
    rows = (
        row.split()
        for row in site.remote(source).run(["bash", "-c", script + "wait"]).out.splitlines()
    )
    return {node: words.get(code, f"exit code {code}") for node, code in rows}


def datagram(site: Site, chains: Chains, source: str, to: str) -> str:
    """What became of one datagram: "dropped" by a rule where it arrived, "passed", or "lost"."""
    keys = {
        "dropped": ("IN", site.address(source), "DROP"),
        "passed": ("IN", site.address(source), ""),
    }
    before = chains.hits(to)
    send = f"echo fencepost > /dev/udp/{site.address(to)}/{_DISCARD}"
    # A rule of another fault may keep it from being sent at all.
    site.remote(source).run(["bash", "-c", send], check=False)
    end = time.monotonic() + PROBE_S
    while True:
        after = chains.hits(to)
        for what, key in keys.items():
            if after.get(key, 0) > before.get(key, 0):
                return what
        if time.monotonic() > end:
            return "lost"
