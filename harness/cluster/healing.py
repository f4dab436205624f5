"""Finds and undoes the remains of a run on its nodes, even of a run that was killed.

Each fault family finds the remains of its faults (nemesis/family.py). This file finds those of the
run itself: clients, files, a server that is down.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from fencepost.harness.cluster.cluster import Cluster
from fencepost.harness.cluster.nodes import role
from fencepost.harness.errors import Crashed
from fencepost.harness.remote.processes import CLIENT, RESOURCE, kill_marked, marked
from fencepost.harness.remote.remote import Remote, RemoteError
from fencepost.harness.servers.external import ForeignServer
from fencepost.harness.servers.kinds import KINDS
from fencepost.harness.servers.server import Server
from fencepost.nemesis.families import FAMILIES
from fencepost.nemesis.family import Family
from fencepost.nemesis.nemesis import Leftover
from fencepost.node.lazy import CONTROL
from fencepost.node.places import CODE, CODE_FILE, DATA, LOGS, PID_FILE, STARTING

_SHIPPED = (CODE_FILE, CODE, f"{CODE}.tar")
_FILES = (DATA, PID_FILE, STARTING, *_SHIPPED, CONTROL, LOGS)


def unusable() -> list[str]:
    """Return a sentence for each package whose faults or servers cannot be loaded.

    Their remains cannot be healed.
    """
    return [str(error) for error in (*FAMILIES.sound()[1], *KINDS.sound()[1])]


def heal(cluster: Cluster, nodes: Iterable[str]) -> list[str]:
    """Heal nodes that keep running; return a sentence for each thing undone. Idempotent.

    Raises:
        Crashed: some nodes could not be healed; all others were.
    """

    def mend(node: str) -> list[str]:
        remote = cluster.remote(node)
        found, failed = _left(remote, node)
        undone = _undone(found, failed)
        server = _server(remote, node)
        # Last, because a fault or its undoing may have ended the server.
        if server is not None and not server.running():
            server.start()
            server.wait_ready()
            undone.append("started its server, which was down")
        _must_be_none(failed, undone)
        return [f"{node}: {words}" for words in undone]

    return _everywhere(mend, nodes, "healed")


def mended(remote: Remote, server: ForeignServer) -> list[str]:
    """Undo what faults left on an external server; return a sentence for each thing undone.

    Raises:
        Crashed: some things could not be undone; all others were.
    """
    found, failed = _of_faults(remote, server)
    undone = _undone(found, failed)
    _must_be_none(failed, undone)
    return undone


def leave(remote: Remote, node: str) -> list[str]:
    """Clean up a host of a hosts file: clients, server, data, faults and files. Idempotent.

    /opt/fencepost is kept. Return a sentence for each fault that could not be undone.
    """
    for mark in (CLIENT, RESOURCE):
        kill_marked(remote, mark)
    server = _server(remote, node)
    if server is not None:
        server.kill()
        # This also unmounts the disk of the data, if it has its own.
        server.wipe()
    found, failed = _of_faults(remote, server)
    _undone(found, failed)
    of_faults = [file for family in _families() for file in family.files]
    of_servers = [file for kind in KINDS.sound()[0] for file in kind.files]
    remote.run(["rm", "-rf", *_FILES, *of_faults, *of_servers])
    return failed


def problems(cluster: Cluster, nodes: Iterable[str]) -> list[str]:
    """Return a sentence for each thing that `heal` would undo; change nothing.

    Raises:
        Crashed: some nodes could not be checked; the text has the findings of the others.
    """

    def look(node: str) -> list[str]:
        remote = cluster.remote(node)
        things, failed = _left(remote, node)
        found = [thing.what for thing in things]
        _must_be_none(failed, found)
        server = _server(remote, node)
        if server is not None and not server.running():
            found.append("its server is down")
        return [f"{node}: {words}" for words in found]

    return _everywhere(look, nodes, "looked at")


def _everywhere(work: Callable[[str], list[str]], nodes: Iterable[str], done: str) -> list[str]:
    """Work on every node, even after one has failed; return all findings."""
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
            "Retry; if this fails again, run `fencepost cluster down`, which also removes nodes "
            f"that do not answer.{others}"
        )
    return found


def _server(remote: Remote, node: str) -> Server | None:
    wanted = role(node)
    kind = next((kind for kind in KINDS.sound()[0] if kind.name == wanted), None)
    return None if kind is None else Server(remote, kind, {})


def _families() -> list[Family]:
    return FAMILIES.sound()[0]


def _left(remote: Remote, node: str) -> tuple[list[Leftover], list[str]]:
    """Return what clients and faults left on a node, and the errors of families that failed."""
    server = _server(remote, node)
    found = [
        Leftover(
            f"a client was left behind (pid {process.pid})",
            f"ended a client that was left behind (pid {process.pid})",
            partial(remote.signal, process.pid, signal.SIGKILL, process.started),
        )
        for process in marked(remote, CLIENT)
    ]
    of_faults, failed = _of_faults(remote, server)
    return found + of_faults, failed


def _of_faults(
    remote: Remote, server: Server | ForeignServer | None
) -> tuple[list[Leftover], list[str]]:
    found: list[Leftover] = []
    failed: list[str] = []
    for family in _families():
        if family.ours_alone and isinstance(server, ForeignServer):
            continue
        try:
            found += family.leftovers(remote, server)
        except (RemoteError, Crashed):
            raise  # the node failed, so every family would
        except Exception as error:  # a family of a package may do anything
            words = f"{type(error).__name__}: {error}"
            failed.append(f"cannot find what the fault {family.name} left: {words}")
    return found, failed


def _undone(found: Iterable[Leftover], failed: list[str]) -> list[str]:
    """Undo everything; return the undone leftovers, and add the errors to `failed`."""
    undone = []
    for thing in found:
        try:
            thing.undo()
        except (RemoteError, Crashed):
            raise
        except Exception as error:  # from a family of a package
            failed.append(f"{thing.what}: undoing it failed ({type(error).__name__}: {error})")
        else:
            undone.append(thing.undone)
    return undone


def _must_be_none(failed: Sequence[str], undone: Sequence[str] = ()) -> None:
    if failed:
        also = f" (but: {'; '.join(undone)})" if undone else ""
        raise Crashed("; ".join(failed) + also)
