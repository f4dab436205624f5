"""iptables rules on the nodes, in two chains of fencepost's own.

A node's chains are always written as a whole, from the faults that are on: what one fault
leaves behind can not outlive the next change, and nobody else's rule is ever touched.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping

from nemesis.site import Remote, Site

CHAINS = {"INPUT": "FENCEPOST-IN", "OUTPUT": "FENCEPOST-OUT"}

# How long a probe waits for an answer to its SYN; on one machine an answer takes well under 1 ms.
PROBE_S = 0.25

Rules = Mapping[str, list[str]]
"""For each node the rules to add to its chains, each as '<chain> <match> -j DROP'."""


class Chains:
    def __init__(self, site: Site) -> None:
        self._site = site
        self._lock = threading.Lock()
        self._on: dict[str, Rules] = {}
        self._owed: dict[str, list[str]] = {}
        self._ready: set[str] = set()

    def add(self, fault: str, rules: Rules) -> None:
        with self._lock:
            self._on[fault] = rules
            self._write(list(rules))

    def remove(self, fault: str) -> None:
        with self._lock:
            # Until all are written: where a node does not answer, whoever removes the fault once
            # more must find the nodes that it was on.
            nodes = self._owed.setdefault(fault, list(self._on.pop(fault, {})))
            self._write(nodes)
            del self._owed[fault]

    def cut(self, one: str, other: str) -> bool:
        """Whether a fault that is on drops anything between these two."""
        with self._lock:
            return any(
                self._site.address(far) in rule.split()
                for rules in self._on.values()
                for near, far in ((one, other), (other, one))
                for rule in rules.get(near, ())
            )

    def dropped(self, node: str) -> int:
        """How many packets the node's chains have dropped since they were last written."""
        count = 0
        for chain in CHAINS.values():
            listed = self._site.remote(node).run(["iptables", "-w", "-nvxL", chain]).out
            rows = [row.split() for row in listed.splitlines()[2:]]
            count += sum(int(row[0]) for row in rows if len(row) > 2 and row[2] == "DROP")
        return count

    def _write(self, nodes: list[str]) -> None:
        for node in nodes:
            remote = self._site.remote(node)
            if node not in self._ready:
                _hook(remote)
                self._ready.add(node)
            rules = [rule for on in self._on.values() for rule in on.get(node, [])]
            lines = "\n".join(f"-A {rule}" for rule in rules)
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
