"""Implements a Remote into an external container, through a sidecar container.

The sidecar shares the network and the processes of that container, but has its own files. It ends
with the first process of that container, as all processes there do. So each call first checks that
the sidecar runs, and starts a new one if the container was restarted. A connection into an ended
sidecar may stay open without ever getting an answer.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence

from fencepost.harness.remote.agent import AgentRemote
from fencepost.harness.remote.docker import exec_in
from fencepost.harness.remote.remote import NoAnswer, Result

# It adopts orphans, which the first process of the server's container would get otherwise.
_REAPER = ("tini", "-s", "--")

Place = tuple[str, str]
"""A sidecar's id, and the start time of the container that it belongs to."""


class SidecarRemote(AgentRemote):
    """A Remote through a sidecar.

    `place` starts the sidecar if necessary and returns where it is; None if the container is down.
    """

    def __init__(self, node: str, place: Callable[[], Place | None]) -> None:
        super().__init__(node)
        self._place = place
        self._at: Place | None = None

    def _there(self) -> bool:
        now = self._place()
        if now != self._at:
            self.close()
            self._at = now
        return now is not None

    def _must_be_there(self) -> None:
        if not self._there():
            raise NoAnswer(f"{self.node}: its container is not running")

    def spawn(self, argv: Sequence[str]) -> subprocess.Popen[bytes]:
        place = self._at or self._place()
        if place is None:
            raise NoAnswer(f"{self.node}: its container is not running")
        return exec_in(place[0], [*_REAPER, *argv])

    def run(self, argv: Sequence[str], *, timeout_s: float = 10.0, check: bool = True) -> Result:
        self._must_be_there()
        return super().run(argv, timeout_s=timeout_s, check=check)

    def put(self, path: str, content: bytes) -> None:
        self._must_be_there()
        super().put(path, content)

    def get(self, path: str) -> bytes:
        self._must_be_there()
        return super().get(path)

    def signal(self, pid: int, number: int, started: str | None = None) -> bool:
        return self._there() and super().signal(pid, number, started)

    def state(self, pid: int, started: str | None = None) -> str | None:
        """As in Remote; None too if the container is down."""
        return super().state(pid, started) if self._there() else None
