"""Finds and undoes what a run left on its nodes, even a run that was killed.

Each fault family knows what its faults leave (nemesis/family.py). This file knows what the run
itself leaves: clients, files, a server that is down.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from fencepost.compose.node.lazy import CONTROL
from fencepost.compose.node.places import CODE, DATA, LOGS, PID_FILE, RUN
from fencepost.harness.cluster.cluster import Cluster
from fencepost.harness.cluster.nodes import role
from fencepost.harness.db.kinds import KINDS
from fencepost.harness.db.postgres import SOCKETS
from fencepost.harness.db.server import Server
from fencepost.harness.errors import Crashed
from fencepost.harness.remote.processes import CLIENT, RESOURCE, marked
from fencepost.harness.remote.remote import Remote, RemoteError
from fencepost.nemesis.families import FAMILIES
from fencepost.nemesis.leftover import Leftover

_FILES = (
    DATA,
    PID_FILE,
    CODE,
    f"{CODE}.tar",
    f"{RUN}/zoo.cfg",
    SOCKETS,
    CONTROL,
    LOGS,
)


def heal(cluster: Cluster, nodes: Iterable[str]) -> list[str]:
    """Heal nodes that stay up, and return what was undone, a sentence each. Idempotent.

    Raises:
        Crashed: some nodes could not be healed; all others are.
    """

    def mend(node: str) -> list[str]:
        remote = cluster.remote(node)
        found = _left(remote, node)
        for thing in found:
            thing.undo()
        undone = [thing.undone for thing in found]
        server = _server(remote, node)
        # Last: a fault may have ended it, or undoing the fault may have.
        if server is not None and not server.running():
            server.start()
            server.wait_ready()
            undone.append("started its server, which was down")
        return [f"{node}: {words}" for words in undone]

    return _everywhere(mend, nodes, "healed")


def leave(remote: Remote, node: str) -> None:
    """Clean up a machine that is not ours: clients, the server with its data, faults, and all files
    but /opt/fencepost. Idempotent."""
    for mark in (CLIENT, RESOURCE):
        for process in marked(remote, mark):
            remote.signal(process.pid, signal.SIGKILL, process.started)
    server = _server(remote, node)
    if server is not None:
        server.kill()
        # This also unmounts the data's own disk, if it has one.
        server.wipe()
    for family in FAMILIES.values():
        for thing in family.leftovers(remote, server):
            thing.undo()
    files = [file for family in FAMILIES.values() for file in family.files]
    remote.run(["rm", "-rf", *_FILES, *files])


def problems(cluster: Cluster, nodes: Iterable[str]) -> list[str]:
    """Return what `heal` would undo, a sentence each, and change nothing.

    Raises:
        Crashed: some nodes could not be looked at; the text has what the others showed.
    """

    def look(node: str) -> list[str]:
        remote = cluster.remote(node)
        found = [thing.what for thing in _left(remote, node)]
        server = _server(remote, node)
        if server is not None and not server.running():
            found.append("its server is down")
        return [f"{node}: {words}" for words in found]

    return _everywhere(look, nodes, "looked at")


def _everywhere(work: Callable[[str], list[str]], nodes: Iterable[str], done: str) -> list[str]:
    """Work on every node, even after one has failed, and return all that was found."""
    found: list[str] = []
    failed: list[str] = []
    with ThreadPoolExecutor(8) as pool:
        tasks = [(node, pool.submit(work, node)) for node in nodes]
    for node, task in tasks:
        try:
            found += task.result()
        except (RemoteError, Crashed) as error:
            text = str(error)
            failed.append(text if text.startswith(node) else f"{node}: {text}")
    if failed:
        others = f"\nOn the others: {'; '.join(found)}" if found else ""
        raise Crashed(
            f"{len(failed)} of {len(tasks)} nodes could not be {done}: {'; '.join(failed)}. "
            "Try again; if it fails again, `fencepost cluster down` removes all nodes, also "
            f"those that do not answer.{others}"
        )
    return found


def _server(remote: Remote, node: str) -> Server | None:
    kind = KINDS.get(role(node))
    return None if kind is None else Server(remote, kind, {})


def _left(remote: Remote, node: str) -> list[Leftover]:
    """Return what clients and faults left on a node."""
    server = _server(remote, node)
    found = [
        Leftover(
            f"a client was left behind (pid {process.pid})",
            f"ended a client that was left behind (pid {process.pid})",
            partial(remote.signal, process.pid, signal.SIGKILL, process.started),
        )
        for process in marked(remote, CLIENT)
    ]
    for family in FAMILIES.values():
        found += family.leftovers(remote, server)
    return found
