"""A cluster of containers by Docker Compose: nodes up, down, and the Remote of each.

One cluster a machine: it has one project name, so that whatever a killed run left behind can
be found and removed. `Claim` keeps a second run out while the first one lives.
"""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import tempfile
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO, Any

import docker
from docker.errors import DockerException

from fencepost.harness.cluster import composefile
from fencepost.harness.cluster.doors import Doors
from fencepost.harness.cluster.engine import Engine
from fencepost.harness.errors import Crashed
from fencepost.harness.remote.docker import DockerRemote
from fencepost.harness.remote.remote import Remote

PROJECT = "fencepost"


class ComposeCluster:
    """Raises Crashed where Docker refuses, with Docker's own words.

    With `doors` the nodes are reached by SSH, which is then started on each.
    """

    def __init__(self, engine: Engine, doors: Doors | None = None) -> None:
        self._doors = doors
        self._engine = engine
        self._image = composefile.IMAGE
        self._client = docker.from_env()
        self._remotes: dict[str, Remote] = {}
        self._containers: dict[str, str] = {}
        self._addresses: dict[str, str] = {}

    @property
    def nodes(self) -> list[str]:
        return list(self._addresses)

    @property
    def versions(self) -> dict[str, str]:
        by = {"remote": "ssh"} if self._doors else {}
        return {"docker": self._engine.version, "image": self._image, **by}

    def up(self, nodes: Iterable[str], image: str) -> None:
        """Start these nodes from an image; those that are up stay as they are."""
        self._image = image
        self._compose("up", "-d", "--no-build", *nodes)
        self.look()
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(self.remote, self.nodes))

    def look(self) -> list[str]:
        """Find the nodes that are up, also those of an earlier command; their names."""
        self._addresses, found = {}, {}
        try:
            for container in self._client.containers.list(filters=_FILTER):
                node = container.labels["com.docker.compose.service"]
                networks = container.attrs["NetworkSettings"]["Networks"]
                self._addresses[node] = next(iter(networks.values()))["IPAddress"]
                found[node] = str(container.id)
        except DockerException as error:
            raise Crashed(f"Docker does not list its containers: {error}") from error
        for node, remote in list(self._remotes.items()):
            # Compose puts another container in a node's place where the image has changed.
            if found.get(node) != self._containers[node]:
                remote.close()
                del self._remotes[node]
        self._containers = found
        return self.nodes

    def down(self) -> None:
        """Remove every node, its data and the network; also what another run left of them."""
        for remote in self._remotes.values():
            remote.close()
        self._remotes, self._containers, self._addresses = {}, {}, {}
        self._compose("down", "-t", "0", "-v", "--remove-orphans")

    def remote(self, node: str) -> Remote:
        if node not in self._remotes:
            inside = DockerRemote(node, self._containers[node])
            self._remotes[node] = (
                self._doors.open(inside, self._addresses[node]) if self._doors else inside
            )
        return self._remotes[node]

    def address(self, node: str) -> str:
        return self._addresses[node]

    def _compose(self, *arguments: str) -> None:
        done = subprocess.run(
            [*self._engine.compose, "-p", PROJECT, "-f", "-", *arguments],
            input=composefile.content(self._image),
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            said = "\n".join((done.stdout + done.stderr).strip().splitlines()[-12:])
            raise Crashed(f"docker compose {' '.join(arguments[:2])} failed:\n{said}{_hint(said)}")


_FILTER: dict[str, str | list[str] | bool] = {"label": f"com.docker.compose.project={PROJECT}"}


def _hint(said: str) -> str:
    if "non-overlapping" in said or "address pool" in said.lower():
        return "\nEvery subnet Docker may use is taken: `docker network prune` removes unused ones."
    if "no space left" in said.lower():
        return "\nThe disk is full: `docker system df` shows what Docker keeps."
    return ""


class Claim:
    """One command at a time may use the cluster; the claim goes with the process that has it.

    Its file also says whether the cluster is to stay up after a run (`keep`).
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path = path or Path(tempfile.gettempdir()) / f"{PROJECT}.lock"
        self._file: IO[str] | None = None

    def take(self) -> None:
        """Raises Crashed where another live process has the cluster."""
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
