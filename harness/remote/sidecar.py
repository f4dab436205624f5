"""A Remote into a container that is not ours, by a helper container of ours beside it.

The helper shares the network and the processes of that container, and nothing else: files are the
helper's own. It ends with the first process of that container, as all processes there do. So before
each call it is asked whether it is there, and put there again if the container was restarted. A
connection into one that has ended may stay open, and nobody would answer by it.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence

from fencepost.harness.remote.agent import AgentRemote
from fencepost.harness.remote.docker import exec_in
from fencepost.harness.remote.remote import NoAnswer, Result

# Orphans of ours go to it. Else they would go to the first process of a container that is not ours.
_REAPER = ("tini", "-s", "--")

Place = tuple[str, str]
"""A helper's id, and since when the container runs that it is beside."""


class HelperRemote(AgentRemote):
    """`place` puts the helper there, and says where it is; None if the container is down."""

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
        """As any Remote's; with its container every process is gone."""
        return super().state(pid, started) if self._there() else None
