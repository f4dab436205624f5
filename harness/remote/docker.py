"""A Remote into a container: each program by a `docker exec` of its own."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence

from fencepost.harness.remote.agent import AgentRemote
from fencepost.harness.remote.remote import Program


class DockerRemote(AgentRemote):
    """`container` is the container's name or id."""

    def __init__(self, node: str, container: str) -> None:
        super().__init__(node)
        self.container = container

    def spawn(self, argv: Sequence[str]) -> Program:
        return exec_in(self.container, argv)


def exec_in(container: str, argv: Sequence[str]) -> subprocess.Popen[bytes]:
    """Start a program in a container with its streams connected here."""
    return subprocess.Popen(
        ["docker", "exec", "-i", container, *argv],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
        # Ctrl-C is for the harness, which ends its programs in order.
        start_new_session=True,
    )
