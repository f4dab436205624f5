"""Implements a Remote into a container: one `docker exec` for each program."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence

from fencepost.harness.remote.agent import AgentRemote
from fencepost.harness.remote.remote import Program


class DockerRemote(AgentRemote):
    """A Remote into a container; `container` is its name or id."""

    def __init__(self, node: str, container: str) -> None:
        super().__init__(node)
        self.container = container

    def spawn(self, argv: Sequence[str]) -> Program:
        return exec_in(self.container, argv)


def exec_in(container: str, argv: Sequence[str]) -> subprocess.Popen[bytes]:
    """Start a program in a container, with its standard streams as pipes."""
    return subprocess.Popen(
        ["docker", "exec", "-i", container, *argv],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
        # Only the harness gets a Ctrl-C; it ends its programs in order.
        start_new_session=True,
    )
