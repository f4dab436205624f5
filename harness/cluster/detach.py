"""Undoes what was done to servers that are not ours, and leaves them as they were.

All of it is found by the helpers, so that it can be done for a command that was killed: a container
that was killed is started again, stopped processes go on, rules and skews are taken away, the
helpers removed. What was brought up for a test is removed.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from docker import DockerClient

from fencepost.harness.cluster.docker_calls import asked
from fencepost.harness.cluster.healing import mended
from fencepost.harness.cluster.project import brought_up, remove
from fencepost.harness.cluster.sidecar import Helper, helpers
from fencepost.harness.errors import Crashed
from fencepost.harness.remote.remote import RemoteError
from fencepost.harness.remote.sidecar import HelperRemote
from fencepost.harness.servers.external import ForeignServer


def undo(client: DockerClient, project: str) -> list[str]:
    """Undo all that was done for a cluster of ours; return what was, a sentence each. Idempotent.

    Raises:
        Crashed: a server could not be healed, and its helper stays; all others are.
    """
    with asked("list what it keeps"):
        ours = brought_up(client, project)
    with ThreadPoolExecutor(8) as pool:
        tasks = [(one, pool.submit(_part, one, bool(ours))) for one in helpers(client, project)]
    undone: list[str] = []
    failed: list[str] = []
    for helper, task in tasks:
        try:
            undone += [f"{helper.target.name}: {words}" for words in task.result()]
        except (RemoteError, Crashed) as error:
            failed.append(f"{helper.target.name}: {error}")
    for name in ours:
        remove(client, name)
    if failed:
        raise Crashed(
            f"{'; '.join(failed)}. `fencepost heal` tries again; a container that is started anew "
            "has none of it"
        )
    return undone


def _part(helper: Helper, removed: bool) -> list[str]:
    """`removed`: the server is removed itself, so that nothing has to be undone."""
    undone = [] if removed else heal(helper)
    helper.remove()
    return undone


def heal(helper: Helper) -> list[str]:
    """Undo what was done to one server, and leave its helper there."""
    undone = []
    if helper.killed:
        helper.start()
        undone.append("started its container, which had been killed")
    if helper.since() is None:
        return undone
    remote = HelperRemote(helper.target.node, helper.beside)
    try:
        server = ForeignServer(remote, helper, None, int(helper.target.port), stays=True)
        if stopped := server.stopped():
            server.resume()
            undone.append(f"resumed its stopped processes ({len(stopped)})")
        return undone + mended(remote, server)
    finally:
        remote.close()
