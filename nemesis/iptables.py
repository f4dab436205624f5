"""Reads and writes a node's iptables, in two chains of fencepost's own.

This is the interface between the faults of links and a node: tests replace it by a network in
memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise

from fencepost.nemesis.site import Remote

CHAINS = {"INPUT": "FENCEPOST-IN", "OUTPUT": "FENCEPOST-OUT"}

# How long a probe waits for an answer to its SYN; on one machine an answer takes well under 1 ms.
PROBE_S = 0.25
# UDP's discard service (RFC 863): no program listens there or sends to it.
_DISCARD = 9
_ANSWERS = {"0": "open", "1": "refused", "124": "silent"}


@dataclass(frozen=True)
class Rule:
    """A rule for packets from an address (`way` IN) or to it (OUT).

    `verdict` DROP drops all; REJECT resets TCP connections; RESET lets their resets pass, which the
    kernel sends to itself in the name of the other end; "" lets datagrams of `send_datagram` pass,
    and counts them. `port`: only one TCP connection, for example "--sport 40000"; with "" its
    packets pass and are counted. `share`: the part of the packets that the rule meets, each of them
    drawn at random (xt_statistic).
    """

    way: str
    address: str
    verdict: str = "DROP"
    port: str = ""
    share: float = 1.0

    def __str__(self) -> str:
        text = f"{self.way} {'-s' if self.way == 'IN' else '-d'} {self.address}"
        text += f" -p tcp {self.port}" if self.port else ""
        if self.share < 1:
            text += f" -m statistic --mode random --probability {self.share}"
        match self.verdict:
            case "REJECT":
                return f"{text} -p tcp -j REJECT --reject-with tcp-reset"
            case "RESET":
                return f"{text} -p tcp --tcp-flags RST RST -j ACCEPT"
            case "" if self.port:
                return text
            case "":
                return f"{text} -p udp --dport {_DISCARD}"
        return f"{text} -j {self.verdict}"


def write(remote: Remote, rules: Iterable[Rule]) -> None:
    """Replace the content of the chains by these rules, in their order, in one step."""
    remote.run(["bash", "-c", f"iptables-restore -w --noflush <<'E'\n{table(rules)}E"])


def table(rules: Iterable[Rule]) -> str:
    """Format the rules for iptables-restore."""
    # Naming a chain in the head empties it.
    heads = [f":{chain} - [0:0]" for chain in CHAINS.values()]
    lines = [f"-A FENCEPOST-{rule}" for rule in rules]
    return "\n".join(["*filter", *heads, *lines, "COMMIT", ""])


def hits(remote: Remote) -> dict[Rule, int]:
    """Return how many packets each rule met since the chains were last written."""
    found: Counter[Rule] = Counter()
    for chain in CHAINS.values():
        found.update(counted(remote.run(["iptables", "-w", "-v", "-S", chain]).out))
    return dict(found)


def counted(listing: str) -> dict[Rule, int]:
    """Parse the rules of `iptables -v -S` with how many packets each met."""
    found: Counter[Rule] = Counter()
    for line in listing.splitlines():
        words = line.split()
        if words[:1] != ["-A"]:
            continue
        after = dict(pairwise(words))
        address = (after.get("-s") or after.get("-d") or "").partition("/")[0]
        way = words[1].removeprefix("FENCEPOST-")
        tcp = after.get("-p") == "tcp"
        ends = [f"{end} {after[end]}" for end in ("--sport", "--dport") if tcp and end in after]
        port = ends[0] if ends else ""
        # The kernel keeps the probability in 31 bits.
        share = round(float(after.get("--probability", "1")), 6)
        rule = Rule(way, address, after.get("-j", ""), port, share)
        found[rule] += int(after.get("-c", "0"))
    return dict(found)


def hook(remote: Remote) -> None:
    """Send every packet through the chains. Idempotent."""
    steps = [
        f"iptables -w -N {own} 2>/dev/null; "
        f"iptables -w -C {chain} -j {own} 2>/dev/null || iptables -w -I {chain} -j {own}"
        for chain, own in CHAINS.items()
    ]
    remote.run(["bash", "-c", "; ".join(steps)])


def clear(remote: Remote) -> None:
    """Remove the chains from a node, whatever made them. Idempotent."""
    steps = [
        f"iptables -w -D {chain} -j {own} 2>/dev/null; "
        f"iptables -w -F {own} 2>/dev/null; iptables -w -X {own} 2>/dev/null"
        for chain, own in CHAINS.items()
    ]
    remote.run(["bash", "-c", "; ".join(steps) + "; true"])


def there(remote: Remote) -> bool:
    """Return whether the node has any of the chains, or a jump to one."""
    listed = remote.run(["iptables", "-w", "-S"]).out
    return any(f"-j {chain}" in listed or f"-N {chain}" in listed for chain in CHAINS.values())


def connect(remote: Remote, ends: Mapping[str, tuple[str, int | None]]) -> dict[str, str]:
    """Try a new TCP connection from a node to each of these addresses and ports.

    "open" (accepted), "refused" (the packets pass, no program listens) or "silent" (no answer).
    """
    script = "".join(
        f"(timeout {PROBE_S} bash -c 'exec 3<>/dev/tcp/{address}/{port}' 2>/dev/null; "
        f"echo {name} $?) & "
        for name, (address, port) in ends.items()
    )
    rows = (row.split() for row in remote.run(["bash", "-c", script + "wait"]).out.splitlines())
    return {name: _ANSWERS.get(code, f"exit code {code}") for name, code in rows}


def unsent(remote: Remote, address: str) -> list[int]:
    """Return the local ports of a node's TCP connections to an address with unacknowledged data,
    whatever process had them: TCP keeps sending for a closed one (proc(5), /proc/net/tcp:
    tx_queue)."""
    far = "".join(f"{int(byte):02X}" for byte in reversed(address.split(".")))
    found = []
    for row in remote.run(["cat", "/proc/net/tcp"]).out.splitlines()[1:]:
        _, near, to, _, queues = row.split()[:5]
        if to.partition(":")[0] == far and int(queues.partition(":")[0], 16):
            found.append(int(near.partition(":")[2], 16))
    return found


def send_datagram(remote: Remote, address: str) -> None:
    """Send one datagram, which gets no answer; a rule may prevent sending it at all."""
    send = f"echo fencepost > /dev/udp/{address}/{_DISCARD}"
    remote.run(["bash", "-c", send], check=False)
