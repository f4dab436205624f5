"""Undoes all changes to external servers.

The sidecars record the changes, so this also works for a command that was killed: it restarts
killed containers, resumes stopped processes, and removes rules, clock skews and the sidecars. It
removes Compose projects that were started for a test.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from docker import DockerClient

from fencepost.harness.cluster.docker_calls import request
from fencepost.harness.cluster.healing import mended
from fencepost.harness.cluster.project import brought_up, remove
from fencepost.harness.cluster.sidecar import Sidecar, sidecars
from fencepost.harness.errors import Crashed
from fencepost.harness.remote.remote import RemoteError
from fencepost.harness.remote.sidecar import SidecarRemote
from fencepost.harness.servers.external import ForeignServer


def undo(client: DockerClient, project: str) -> list[str]:
    """Undo all changes for one cluster; return a sentence for each. Idempotent.

    Raises:
        Crashed: a server could not be healed, and its sidecar is kept; all others were.
    """
    with request("list its containers and networks"):
        ours = brought_up(client, project)
    with ThreadPoolExecutor(8) as pool:
        tasks = [(one, pool.submit(_part, one, bool(ours))) for one in sidecars(client, project)]
    undone: list[str] = []
    failed: list[str] = []
    for sidecar, task in tasks:
        try:
            undone += [f"{sidecar.target.name}: {words}" for words in task.result()]
        except (RemoteError, Crashed) as error:
            failed.append(f"{sidecar.target.name}: {error}")
    for name in ours:
        remove(client, name)
    if failed:
        raise Crashed(
            f"{'; '.join(failed)}. `fencepost heal` retries; a restart of the container removes "
            "these changes too"
        )
    return undone


def _part(sidecar: Sidecar, removed: bool) -> list[str]:
    """Heal a server and remove its sidecar. `removed`: the server is removed, so skip healing."""
    undone = [] if removed else heal(sidecar)
    sidecar.remove()
    return undone


def heal(sidecar: Sidecar) -> list[str]:
    """Undo the changes to one server; keep its sidecar."""
    undone = []
    if sidecar.killed:
        sidecar.start()
        undone.append("restarted its killed container")
    if sidecar.since() is None:
        return undone
    remote = SidecarRemote(sidecar.target.node, sidecar.beside)
    try:
        server = ForeignServer(remote, sidecar, None, int(sidecar.target.port), stays=True)
        if stopped := server.stopped():
            server.resume()
            undone.append(f"resumed its stopped processes ({len(stopped)})")
        return undone + mended(remote, server)
    finally:
        remote.close()
