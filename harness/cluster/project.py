"""Uses the services of a user's Compose file: the running project, or a temporary one.

A running project is used and kept. Otherwise the services are started as a new project, separate
from the user's, and everything is removed at the end: containers, networks, volumes, and images
built for it. The new project's name has a random part, so that it is unique, and starts with the
cluster's name, so that it is removed with the cluster.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence
from pathlib import Path

from docker import DockerClient
from docker.errors import NotFound

from fencepost.harness.cluster import docker_calls
from fencepost.harness.cluster.docker_calls import request
from fencepost.harness.cluster.docker_engine import Say
from fencepost.harness.errors import BadArguments, Crashed

_PROJECT = "com.docker.compose.project"
_OURS = re.compile(r"(fencepost.*)-servers-[0-9a-f]{8}")
_READ_S, _UP_S = 60.0, 900.0


class Project:
    """A Compose file. `compose`: the command that calls Compose; `ours`: the cluster's name."""

    def __init__(self, compose: Sequence[str], file: Path, ours: str, client: DockerClient) -> None:
        self._command = [*compose, "-f", str(file)]
        self._file = file
        self._ours = ours
        self._client = client

    def containers(self, services: Sequence[str], say: Say) -> tuple[dict[str, str], bool]:
        """Return the container of each service, and whether the project ran already (is kept).

        Raises:
            BadArguments: the file is invalid, has no such service, or only some of them run.
            Crashed: the services cannot be started.
        """
        self._must_have(services)
        found = self._of(self._command, services)
        running = {one: there for one, there in found.items() if there}
        if running:
            if missing := [one for one in services if one not in running]:
                raise BadArguments(
                    f"{', '.join(running)} of {self._file} is running, but {', '.join(missing)} is "
                    "not: start them all (`docker compose up -d`), or stop them all"
                )
            say(f"{self._file} is running: its servers are used and kept")
            return running, True
        say(f"Starting {', '.join(services)} of {self._file}, to be removed afterwards")
        name = f"{self._ours}-servers-{secrets.token_hex(4)}"
        command = [*self._command, "-p", name]
        done = docker_calls.command(
            [*command, "up", "-d", *services], _UP_S, start_new_session=True
        )
        if done.returncode:
            raise Crashed(f"cannot start {self._file}: {_end(done.stdout + done.stderr)}")
        return self._of(command, services), False

    def _must_have(self, services: Sequence[str]) -> None:
        if not self._file.is_file():
            raise BadArguments(f"there is no Compose file {self._file}")
        done = docker_calls.command([*self._command, "config", "--services"], _READ_S)
        if done.returncode:
            raise BadArguments(f"{self._file} is not a valid Compose file: {_end(done.stderr)}")
        there = done.stdout.split()
        for service in services:
            if service not in there:
                raise BadArguments(
                    f"there is no service {service!r} in {self._file}; choose from: "
                    f"{', '.join(sorted(there))}"
                )

    def _of(self, command: Sequence[str], services: Sequence[str]) -> dict[str, str]:
        """Return the running container of each service; "" for a service without one."""
        found = {}
        for service in services:
            done = docker_calls.command([*command, "ps", "-q", service], _READ_S)
            running = [one for one in done.stdout.split() if self._runs(one)]
            if len(running) > 1:
                raise BadArguments(
                    f"service {service} of {self._file} has {len(running)} containers: name the "
                    "servers' containers with --containers"
                )
            found[service] = running[0] if running else ""
        return found

    def _runs(self, container: str) -> bool:
        with request(f"inspect the container {container}"):
            try:
                return bool(self._client.containers.get(container).attrs["State"]["Running"])
            except NotFound:
                return False


def brought_up(client: DockerClient, ours: str) -> list[str]:
    """Return the names of the projects that were started for a cluster. Call in `request`."""
    return sorted(name for name, owner in _brought_up(client).items() if owner == ours)


def owners(client: DockerClient) -> set[str]:
    """Return the clusters for which a project was started. Call in `request`."""
    return set(_brought_up(client).values())


def _brought_up(client: DockerClient) -> dict[str, str]:
    """Return each project that fencepost started, with its cluster."""
    any: dict[str, str | list[str] | bool] = {"label": _PROJECT}
    kept = [
        *(one.labels for one in client.containers.list(all=True, filters=any, ignore_removed=True)),
        *(one.attrs.get("Labels") for one in client.networks.list(filters=any)),
        *(one.attrs.get("Labels") for one in client.volumes.list(filters=any)),
    ]
    names = {str((labels or {}).get(_PROJECT, "")) for labels in kept}
    return {name: found[1] for name in names if (found := _OURS.fullmatch(name))}


def remove(client: DockerClient, name: str) -> None:
    """Remove everything of a project that fencepost started.

    Raises:
        Refused: Docker failed to remove something.
    """
    of: dict[str, str | list[str] | bool] = {"label": f"{_PROJECT}={name}"}
    with request(f"remove the project {name}"):
        for container in client.containers.list(all=True, filters=of, ignore_removed=True):
            docker_calls.remove(container)
        for network in client.networks.list(filters=of):
            network.reload()
            for id, end in (network.attrs.get("Containers") or {}).items():
                # After a killed command, fencepost's clients may still be connected.
                network.disconnect(end.get("Name") or id, force=True)
            network.remove()
        for volume in client.volumes.list(filters=of):
            volume.remove(force=True)
        for image in client.images.list():
            # Images built for it have its name; pulled images do not.
            if image.tags and all(tag.startswith((f"{name}_", f"{name}-")) for tag in image.tags):
                client.images.remove(str(image.id), force=True)


def _end(text: str) -> str:
    """Return the end of Compose's output, on one line."""
    lines = [line.strip() for line in text.strip().splitlines() if line.strip()]
    return " ".join(lines[-3:])[-600:]
