"""Restricts access to the servers on the hosts of a hosts file to the nodes of the test.

The locks and libraries under test are used as their documentation shows, mostly without a password.
So each host has an iptables chain that drops packets from other machines to the servers' ports. It
returns all other packets to the host's own rules.
"""

from __future__ import annotations

from collections.abc import Iterable

from fencepost.harness.remote.remote import Remote
from fencepost.harness.servers.kinds import KINDS
from fencepost.workloads.resources.server import PORT as RESOURCE_PORT

CHAIN = "FENCEPOST-ADMIT"


def ports() -> list[int]:
    """Return every port that a server of the test may listen on."""
    kinds = KINDS.sound()[0]
    return sorted({RESOURCE_PORT, *(port for kind in kinds for port in (kind.port, *kind.peers))})


def admit(remote: Remote, addresses: Iterable[str]) -> None:
    """Admit only these addresses and the host itself to the ports of servers."""
    passing = [f"-A {CHAIN} -i lo -j RETURN"]
    passing += [f"-A {CHAIN} -s {address} -j RETURN" for address in sorted(set(addresses))]
    rows = ["*filter", f":{CHAIN} - [0:0]", *passing, f"-A {CHAIN} -j DROP", "COMMIT", ""]
    fill = "iptables-restore -w --noflush <<'E'\n" + "\n".join(rows) + "E\n"
    hook = "".join(
        f"iptables -w -C {rule} 2>/dev/null || iptables -w -I {rule}\n" for rule in _hooks()
    )
    remote.run(["bash", "-c", f"set -e\n{fill}{hook}"])


def undo(remote: Remote) -> None:
    """Remove the chain. Idempotent."""
    unhook = "".join(f"iptables -w -D {rule} 2>/dev/null\n" for rule in _hooks())
    empty = f"iptables -w -F {CHAIN} 2>/dev/null\niptables -w -X {CHAIN} 2>/dev/null\n"
    remote.run(["bash", "-c", f"{unhook}{empty}true"])


def _hooks() -> list[str]:
    # One rule can list 15 ports.
    found = ports()
    parts = [found[start : start + 15] for start in range(0, len(found), 15)]
    return [
        f"INPUT -p tcp -m multiport --dports {','.join(map(str, part))} -j {CHAIN}"
        for part in parts
    ]
