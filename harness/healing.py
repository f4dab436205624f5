"""Undoing whatever a run, also a killed one, may have left in its nodes."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

from harness.cluster.compose import ComposeCluster, role
from harness.db.kinds import KINDS
from harness.db.server import Server
from harness.remote.remote import Remote
from nemesis.chains import CHAINS, clear
from nemesis.clock import CLOCK_FILE


def heal(cluster: ComposeCluster, nodes: Iterable[str]) -> list[str]:
    """Heal nodes that are to stay up; what was found and undone, in words. Idempotent."""
    with ThreadPoolExecutor(8) as pool:
        found = pool.map(lambda node: _heal(node, cluster.remote(node)), nodes)
        return [words for words_of_node in found for words in words_of_node]


def _heal(node: str, remote: Remote) -> list[str]:
    found = []
    listed = remote.run(["iptables", "-w", "-S"]).out
    if any(f"-j {chain}" in listed or f"-N {chain}" in listed for chain in CHAINS.values()):
        clear(remote)
        found.append(f"{node}: took fencepost's iptables chains away")
    workers = remote.run(["pgrep", "-f", "harness.worker.program"], check=False).out.split()
    for pid in workers:
        remote.signal(int(pid), signal.SIGKILL)
        found.append(f"{node}: ended a client that was left behind (pid {pid})")
    ahead = _heal_clocks(node, remote, found)
    kind = KINDS.get(role(node))
    if kind is not None:
        server = Server(remote, kind, {})
        if ahead:
            server.kill()
            found.append(f"{node}: ended its server, whose monotonic clock has gone back")
        found += _heal_server(node, remote, server)
    return found


def _heal_clocks(node: str, remote: Remote, found: list[str]) -> bool:
    """Undo the skew of every process, to the byte; whether a monotonic clock has gone back."""
    # A node that was kept up may be of an image that is older than this command.
    said = remote.run(["bash", "-c", "! command -v vdso > /dev/null || vdso show"]).out
    skewed = json.loads(said or "{}")
    offsets = skewed.get("offset_ns", {})
    if offsets or skewed.get("kept"):
        remote.run(["vdso", "undo"])
        found.append(f"{node}: set the clocks of {len(offsets)} process(es) right")
    return any(clocks.get("monotonic", 0) > 0 for clocks in offsets.values())


def _heal_server(node: str, remote: Remote, server: Server) -> list[str]:
    found = []
    pid = server.pid()
    if pid is not None and remote.state(pid) == "T":
        server.resume()
        found.append(f"{node}: resumed its stopped server (pid {pid})")
    if remote.run(["cat", CLOCK_FILE], check=False).out.strip() not in ("", "+0", "+0.000000"):
        remote.put(CLOCK_FILE, b"+0\n")
        found.append(f"{node}: set its server's clock right")
    if not server.running():
        server.start()
        server.wait_ready()
        found.append(f"{node}: started its server, which was down")
    return found
