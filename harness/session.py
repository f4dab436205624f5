"""A cluster for the length of a command: engine, image, nodes up, and everything down again.

Whatever the way out, the nodes are removed; where that can not be done (SIGKILL), the next
command finds what was left by the project's name, and removes it first.
"""

from __future__ import annotations

import signal
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import FrameType

from harness.cluster import engine, image
from harness.cluster.compose import Claim, ComposeCluster
from harness.cluster.engine import Say
from harness.healing import heal


@contextmanager
def session(
    nodes: Iterable[str], say: Say, leave_up: bool = False, libraries: Iterable[str] = ()
) -> Iterator[ComposeCluster]:
    """These nodes, up and healed. Afterwards all are removed, but those of `cluster up`.

    Raises:
        Crashed: no engine, no image, no nodes, or somebody else is using them.
        BadArguments: a library that is needed is not in the image; nothing was started.
    """
    with claimed(say) as (cluster, claim):
        wanted = list(nodes)
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
def claimed(say: Say) -> Iterator[tuple[ComposeCluster, Claim]]:
    """The cluster as it is, for this process alone; nothing is started or stopped."""
    found = engine.ensure(say)
    claim = Claim()
    claim.take()
    try:
        yield ComposeCluster(found), claim
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
