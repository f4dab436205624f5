"""Finding and undoing whatever a run, also a killed one, may have left in its nodes."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

from fencepost.harness.cluster.cluster import Cluster
from fencepost.harness.cluster.compose import role
from fencepost.harness.db.kinds import KINDS
from fencepost.harness.db.server import PID_FILE, Server
from fencepost.harness.remote.remote import Remote
from fencepost.harness.run.worker import CODE, PROGRAM
from fencepost.nemesis import packet
from fencepost.nemesis.chains import CHAINS, clear
from fencepost.nemesis.clock import CLOCK_FILE, SKEW_FILE
from fencepost.nemesis.disk import FILLER

_FILES = (
    "/var/lib/fencepost", PID_FILE, CLOCK_FILE, SKEW_FILE, f"{SKEW_FILE}.lock", CODE, f"{CODE}.tar",
    "/run/fencepost/zoo.cfg", "/var/log/fencepost",
)  # fmt: skip
_PROGRAMS = ("fencepost.workloads.client.p", "fencepost.workloads.resources.server")


@dataclass(frozen=True)
class Amiss:
    """One thing that a run left: what it is, what undoing it is called, and how it is undone."""

    what: str
    undone: str
    undo: Callable[[], object]


def heal(cluster: Cluster, nodes: Iterable[str]) -> list[str]:
    """Heal nodes that are to stay up; what was found and undone, in words. Idempotent."""

    def mend(node: str) -> list[str]:
        found = _amiss(cluster.remote(node), node)
        for thing in found:
            thing.undo()
        return [f"{node}: {thing.undone}" for thing in found]

    return _everywhere(mend, nodes)


def leave(remote: Remote, node: str) -> None:
    """Take all that is fencepost's and runs, cuts or skews off a node that stays as a machine,
    its server too, with its data. Idempotent."""
    for program in _PROGRAMS:
        remote.run(["pkill", "-9", "-f", program], check=False)
    kind = KINDS.get(role(node))
    if kind is not None:
        Server(remote, kind, {}).kill()
        # Also where it lies on a disk of its own, which is unmounted.
        remote.run(["node", "wipe", kind.role])
    remote.run(["cpu", "free"])
    remote.run(["vdso", "undo"])
    clear(remote)
    remote.run(["rm", "-rf", *_FILES])


def amiss(cluster: Cluster, nodes: Iterable[str]) -> list[str]:
    """What `heal` would undo, in words; nothing is changed."""

    def look(node: str) -> list[str]:
        return [f"{node}: {thing.what}" for thing in _amiss(cluster.remote(node), node)]

    return _everywhere(look, nodes)


def _everywhere(work: Callable[[str], list[str]], nodes: Iterable[str]) -> list[str]:
    with ThreadPoolExecutor(8) as pool:
        return [words for of_node in pool.map(work, nodes) for words in of_node]


def _amiss(remote: Remote, node: str) -> list[Amiss]:
    found = []
    listed = remote.run(["iptables", "-w", "-S"]).out
    if any(f"-j {chain}" in listed or f"-N {chain}" in listed for chain in CHAINS.values()):
        found.append(
            Amiss(
                "fencepost's iptables chains are there",
                "took fencepost's iptables chains away",
                partial(clear, remote),
            )
        )
    workers = remote.run(["pgrep", "-f", PROGRAM], check=False).out.split()
    found += [
        Amiss(
            f"a client was left behind (pid {pid})",
            f"ended a client that was left behind (pid {pid})",
            partial(remote.signal, int(pid), signal.SIGKILL),
        )
        for pid in workers
    ]
    kind = KINDS.get(role(node))
    server = None if kind is None else Server(remote, kind, {})
    return (
        found
        + _machine(remote, server)
        + _clocks(remote, server)
        + (_server(remote, server) if server else [])
    )


def _machine(remote: Remote, server: Server | None) -> list[Amiss]:
    """What the network's card, the disk and the CPU were left with."""
    found = []
    # A node that was kept up may be of an image that is older than this command.
    look = "! command -v cpu > /dev/null || cpu left; ! command -v tc > /dev/null || tc qdisc show"
    said = remote.run(["bash", "-c", look]).out
    if '"left": true' in said:
        free = partial(remote.run, ["cpu", "free"])
        found.append(Amiss("its server has a CPU quota", "took its server's CPU quota away", free))
    for row in said.splitlines():
        if packet.HANDLE in row:
            device = row.split()[row.split().index("dev") + 1]
            clear_queue = partial(packet.clear, remote, device)
            found.append(Amiss(f"{device} has a queue", f"took {device}'s queue away", clear_queue))
    filler = f"{server.data}/{FILLER}" if server else ""
    if filler and not remote.run(["test", "-e", filler], check=False).code:
        remove = partial(remote.run, ["rm", "-f", filler])
        found.append(Amiss("its server's disk is full", "emptied its server's disk", remove))
    return found


def _clocks(remote: Remote, server: Server | None) -> list[Amiss]:
    """Skewed processes. A monotonic clock goes back with that, which its server can not bear."""
    # A node that was kept up may be of an image that is older than this command.
    said = remote.run(["bash", "-c", "! command -v vdso > /dev/null || vdso show"]).out
    skewed = json.loads(said or "{}")
    offsets = skewed.get("offset_ns", {})
    if not offsets and not skewed.get("kept"):
        return []
    back = any(clocks.get("monotonic", 0) > 0 for clocks in offsets.values())

    def undo() -> None:
        remote.run(["vdso", "undo"])
        if back and server is not None:
            server.kill()
            server.start()
            server.wait_ready()

    if not offsets:
        # Its process is gone: the skew waits for the next one.
        return [Amiss("a skew is left for its next process", "took away what was left", undo)]
    restarted = ", and restarted its server" if back and server is not None else ""
    return [
        Amiss(
            f"the clocks of {len(offsets)} process(es) are skewed",
            f"set the clocks of {len(offsets)} process(es) right{restarted}",
            undo,
        )
    ]


def _server(remote: Remote, server: Server) -> list[Amiss]:
    found = []
    pid = server.pid()
    if pid is not None and remote.state(pid) == "T":
        what = f"its server is stopped (pid {pid})"
        found.append(Amiss(what, f"resumed its stopped server (pid {pid})", server.resume))
    if remote.run(["cat", CLOCK_FILE], check=False).out.strip() not in ("", "+0", "+0.000000"):
        right = partial(remote.put, CLOCK_FILE, b"+0\n")
        found.append(Amiss("its server's clock is off", "set its server's clock right", right))
    if not server.running():

        def start() -> None:
            server.start()
            server.wait_ready()

        found.append(Amiss("its server is down", "started its server, which was down", start))
    return found
