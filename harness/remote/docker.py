"""A Remote into a container, by `docker exec`."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence

from harness.remote.agent import AgentRemote


class DockerRemote(AgentRemote):
    """`container` is the container's name or id; it is opened when first used."""

    def __init__(self, node: str, container: str) -> None:
        super().__init__(node)
        self.container = container

    def spawn(self, argv: Sequence[str]) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            ["docker", "exec", "-i", self.container, *argv],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            # Ctrl-C is for the harness, which ends its programs in order.
            start_new_session=True,
        )
