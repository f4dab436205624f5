"""A cluster for the length of a command: engine, image, nodes up, and everything down again.

Whatever the way out, the nodes are removed; where that can not be done (SIGKILL), the next
command finds what was left by the project's name, and removes it first.
"""

from __future__ import annotations

import hashlib
import signal
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from harness.cluster import engine, hosts, image
from harness.cluster.cluster import Cluster
from harness.cluster.compose import PROJECT, Claim, ComposeCluster
from harness.cluster.engine import Say
from harness.cluster.hosts import HostsCluster
from harness.errors import BadArguments
from harness.healing import heal


@dataclass(frozen=True)
class Reach:
    """How nodes are reached: those of Compose by docker or by ssh; else the hosts of a file."""

    ssh: bool = False
    hosts: Path | None = None


@contextmanager
def session(
    nodes: Iterable[str],
    say: Say,
    leave_up: bool = False,
    libraries: Iterable[str] = (),
    reach: Reach | None = None,
) -> Iterator[Cluster]:
    """These nodes, up and healed. Afterwards all are removed, but those of `cluster up`.

    Raises:
        Crashed: no engine, no image, no nodes, or somebody else is using them.
        BadArguments: a library that is needed is not in the image, or a node not in the hosts'
            file; nothing was started.
    """
    reach = reach or Reach()
    wanted = list(nodes)
    if reach.hosts is not None:
        if library := next(iter(libraries), ""):
            raise BadArguments(f"{library} is tested on Compose's nodes alone: leave --hosts out")
        with _hosts(reach.hosts, wanted, say, leave_up) as there:
            yield there
        return
    with claimed(say, reach.ssh) as (cluster, claim):
        name = image.ensure(say)
        image.must_hold(name, libraries)
        if not claim.keep and cluster.look():
            say("Removing what an earlier run left behind")
            cluster.down()
        elif cluster.nodes or cluster.look():
            for words in heal(cluster, cluster.nodes):
                say(f"Healed: {words}")
        say(f"Bringing up {len(wanted)} nodes")
        try:
            cluster.up(wanted, name)
            yield cluster
        finally:
            if leave_up:
                claim.set_keep(True)
            elif not claim.keep:
                with _undisturbed():
                    cluster.down()


@contextmanager
def _hosts(path: Path, nodes: list[str], say: Say, leave_up: bool) -> Iterator[Cluster]:
    """Hosts that are there already; what a killed run left on them is healed first."""
    cluster = HostsCluster(path, hosts.read(path))
    cluster.must_have(nodes)
    digest = hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:12]
    claim = Claim(Path(tempfile.gettempdir()) / f"{PROJECT}-{digest}.lock")
    claim.take()
    try:
        say(f"Reaching {len(nodes)} hosts")
        cluster.up(nodes)
        for words in heal(cluster, nodes):
            say(f"Healed: {words}")
        yield cluster
    finally:
        if not leave_up:
            with _undisturbed():
                cluster.down()
        claim.release()


@contextmanager
def claimed(say: Say, ssh: bool = False) -> Iterator[tuple[ComposeCluster, Claim]]:
    """The cluster as it is, for this process alone; nothing is started or stopped."""
    found = engine.ensure(say)
    claim = Claim()
    claim.take()
    try:
        yield ComposeCluster(found, ssh), claim
    finally:
        claim.release()


@contextmanager
def _undisturbed() -> Iterator[None]:
    """A second Ctrl-C must not stop the cleaning up that the first one began."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def wait(number: int, frame: FrameType | None) -> None:
        print("fencepost: cleaning up, this takes a few seconds", flush=True)

    for number in before:
        signal.signal(number, wait)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
