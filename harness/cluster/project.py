"""The Compose project of a user's own file: used as it is where it is up, else brought up and down.

What is up is left as it was. What is not up is brought up under a name of ours, beside whatever the
user has of that project, and all of it is removed at the end: containers, networks, volumes, and
images that were built for it. The name has a random part, so that nobody else's project has it by
chance, and begins with that of our cluster, so that whoever removes that finds it.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence
from pathlib import Path

from docker import DockerClient
from docker.errors import NotFound

from fencepost.harness.cluster import docker_calls
from fencepost.harness.cluster.docker_calls import asked
from fencepost.harness.cluster.docker_engine import Say
from fencepost.harness.errors import BadArguments, Crashed

_PROJECT = "com.docker.compose.project"
_OURS = re.compile(r"(fencepost.*)-servers-[0-9a-f]{8}")
_READ_S, _UP_S = 60.0, 900.0


class Project:
    """`compose` is the command that calls Compose; `ours` is the name of our cluster."""

    def __init__(self, compose: Sequence[str], file: Path, ours: str, client: DockerClient) -> None:
        self._command = [*compose, "-f", str(file)]
        self._file = file
        self._ours = ours
        self._client = client

    def containers(self, services: Sequence[str], say: Say) -> tuple[dict[str, str], bool]:
        """The container of each service; and whether the project was up, and so stays.

        Raises:
            BadArguments: the file cannot be used, has no such service, or is up in part.
            Crashed: it cannot be brought up.
        """
        self._must_have(services)
        found = self._of(self._command, services)
        running = {one: there for one, there in found.items() if there}
        if running:
            if missing := [one for one in services if one not in running]:
                raise BadArguments(
                    f"of {self._file}, {', '.join(running)} is running and {', '.join(missing)} is "
                    "not: bring them all up (`docker compose up -d`), or none"
                )
            say(f"{self._file} is up: its servers are used as they are, and stay")
            return running, True
        say(f"Bringing up {', '.join(services)} of {self._file}, to be removed afterwards")
        name = f"{self._ours}-servers-{secrets.token_hex(4)}"
        command = [*self._command, "-p", name]
        done = docker_calls.command(
            [*command, "up", "-d", *services], _UP_S, start_new_session=True
        )
        if done.returncode:
            raise Crashed(f"{self._file} cannot be brought up: {_said(done.stdout + done.stderr)}")
        return self._of(command, services), False

    def _must_have(self, services: Sequence[str]) -> None:
        if not self._file.is_file():
            raise BadArguments(f"there is no Compose file {self._file}")
        done = docker_calls.command([*self._command, "config", "--services"], _READ_S)
        if done.returncode:
            raise BadArguments(f"{self._file} cannot be used: {_said(done.stderr)}")
        there = done.stdout.split()
        for service in services:
            if service not in there:
                raise BadArguments(
                    f"there is no service {service!r} in {self._file}; choose from: "
                    f"{', '.join(sorted(there))}"
                )

    def _of(self, command: Sequence[str], services: Sequence[str]) -> dict[str, str]:
        """The container of each service that has one which runs; "" for those that have none."""
        found = {}
        for service in services:
            done = docker_calls.command([*command, "ps", "-q", service], _READ_S)
            running = [one for one in done.stdout.split() if self._runs(one)]
            if len(running) > 1:
                raise BadArguments(
                    f"service {service} of {self._file} has {len(running)} containers: name those "
                    "that are the servers with --containers"
                )
            found[service] = running[0] if running else ""
        return found

    def _runs(self, container: str) -> bool:
        with asked(f"show the container {container}"):
            try:
                return bool(self._client.containers.get(container).attrs["State"]["Running"])
            except NotFound:
                return False


def brought_up(client: DockerClient, ours: str) -> list[str]:
    """The projects that were brought up for a cluster of ours, by name. Called within `asked`."""
    return sorted(name for name, owner in _brought_up(client).items() if owner == ours)


def owners(client: DockerClient) -> set[str]:
    """The clusters of ours for which a project was brought up. Called within `asked`."""
    return set(_brought_up(client).values())


def _brought_up(client: DockerClient) -> dict[str, str]:
    """Each project that was brought up here, and for which cluster of ours."""
    any: dict[str, str | list[str] | bool] = {"label": _PROJECT}
    kept = [
        *(one.labels for one in client.containers.list(all=True, filters=any, ignore_removed=True)),
        *(one.attrs.get("Labels") for one in client.networks.list(filters=any)),
        *(one.attrs.get("Labels") for one in client.volumes.list(filters=any)),
    ]
    names = {str((labels or {}).get(_PROJECT, "")) for labels in kept}
    return {name: found[1] for name in names if (found := _OURS.fullmatch(name))}


def remove(client: DockerClient, name: str) -> None:
    """Remove all that Docker keeps of a project that was brought up here.

    Raises:
        Refused: Docker does not remove something.
    """
    of: dict[str, str | list[str] | bool] = {"label": f"{_PROJECT}={name}"}
    with asked(f"remove the project {name}"):
        for container in client.containers.list(all=True, filters=of, ignore_removed=True):
            docker_calls.remove(container)
        for network in client.networks.list(filters=of):
            network.reload()
            for id, end in (network.attrs.get("Containers") or {}).items():
                # Clients of ours, where a command was killed.
                network.disconnect(end.get("Name") or id, force=True)
            network.remove()
        for volume in client.volumes.list(filters=of):
            volume.remove(force=True)
        for image in client.images.list():
            # What was built for it; what was pulled has its own name.
            if image.tags and all(tag.startswith((f"{name}_", f"{name}-")) for tag in image.tags):
                client.images.remove(str(image.id), force=True)


def _said(text: str) -> str:
    """The end of what Compose said, on one line."""
    lines = [line.strip() for line in text.strip().splitlines() if line.strip()]
    return " ".join(lines[-3:])[-600:]
