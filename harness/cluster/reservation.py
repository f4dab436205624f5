"""Keeps this machine's cluster for one command at a time, by a locked file in the temporary folder.

The file also says whether the cluster stays up after a run.
"""

from __future__ import annotations

import fcntl
import json
import os
import tempfile
from pathlib import Path
from typing import IO, Any

from fencepost.harness.errors import Crashed

CONTAINERS, HOSTS = "fencepost.lock", "fencepost-hosts.lock"


class Reservation:
    """The right to use the cluster. It ends with the process at the latest."""

    def __init__(self, name: str = CONTAINERS) -> None:
        self._path = Path(tempfile.gettempdir()) / name
        self._file: IO[str] | None = None

    def take(self) -> None:
        """Raise Crashed, naming the process, if another one has the cluster."""
        file = self._path.open("a+")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            pid = self._read().get("pid", "?")
            file.close()
            raise Crashed(
                f"Another fencepost command (pid {pid}) is using the cluster. Wait for it to "
                "end, or stop it; one machine has one cluster."
            ) from error
        self._file = file
        self._write({"pid": os.getpid(), "keep": self.keep})

    @property
    def keep(self) -> bool:
        """Whether the cluster stays up after a run (`cluster up`)."""
        return bool(self._read().get("keep", False))

    def set_keep(self, keep: bool) -> None:
        self._write({"pid": os.getpid(), "keep": keep})

    def release(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _read(self) -> dict[str, Any]:
        try:
            content = json.loads(self._path.read_text() or "{}")
        except (OSError, ValueError):
            return {}
        return content if isinstance(content, dict) else {}

    def _write(self, content: dict[str, Any]) -> None:
        assert self._file is not None
        self._file.seek(0)
        self._file.truncate()
        self._file.write(json.dumps(content))
        self._file.flush()
