"""Runs a client's program in a container of the user's image, next to its node.

The node has the agent and everything that faults and their receipts need. The container joins the
node's network and process namespace. So a partition of the node also affects the program, the node
can stop and kill the program by its pid, and the image needs neither Python nor a shell.

The program has no pump: its output comes through Docker's streams. It does not start with a skewed
clock (node/launch.py): only the clock of a running program can be skewed.
"""

from __future__ import annotations

import platform
import subprocess
from collections.abc import Sequence
from contextlib import closing, suppress
from dataclasses import dataclass

from docker import DockerClient
from docker.errors import DockerException, ImageNotFound, NotFound
from docker.models.containers import Container
from docker.types import LogConfig

from fencepost.harness.cluster import docker_calls, labels
from fencepost.harness.cluster.cluster import Spawn
from fencepost.harness.cluster.docker_calls import request
from fencepost.harness.cluster.services import NO_MORE, PROCESSES
from fencepost.harness.errors import BadArguments
from fencepost.harness.remote.processes import CLIENT
from fencepost.harness.remote.remote import Program
from fencepost.harness.userlock.user_lock import OWN
from fencepost.node.places import MARK

_LOOK_S = 60.0
_MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}
# Report the exit code as the pump does, unless Docker itself failed (125).
_ATTACHED = """\
docker start -ai "$1"; code=$?
[ $code -eq 125 ] || printf '{"control":"over","code":%d}\\n' $code
"""


def must_serve(image: str, python: bool) -> None:
    """Raise BadArguments if an image is missing here, or is for another machine type.

    `python`: it also needs Python, for a lock that is a class.
    """
    machine = _MACHINES.get(platform.machine(), platform.machine())
    with closing(docker_calls.client()) as client, request(f"show the image {image}"):
        try:
            of = str(client.images.get(image).attrs.get("Architecture", machine))
        except ImageNotFound:
            of = ""
    if not of:
        raise BadArguments(
            f"--client-image: this machine has no image {image}: pull it (`docker pull`) or build "
            "it"
        )
    if of != machine:
        raise BadArguments(f"--client-image: {image} is for {of}, and this machine is {machine}")
    if python and not _has_python(image):
        raise BadArguments(
            f"--client-image: {image} has no python3 (3.9 or newer), which a lock in Python needs; "
            "add it to the image, or use --program"
        )


def _has_python(image: str) -> bool:
    new_enough = "import sys; sys.exit(sys.version_info < (3, 9))"
    apart = ["docker", "run", "--rm", "--network", "none", "--entrypoint", "python3"]
    words = [*apart, image, "-c", new_enough]
    return docker_calls.command(words, _LOOK_S).returncode == 0


@dataclass(frozen=True)
class Place:
    """The node of a program, with its container and its project."""

    node: str
    container: str
    project: str


def spawning(client: DockerClient, place: Place, image: str, archive: bytes) -> Spawn:
    """Return the function that starts a command in such a container.

    `archive` has the files that it needs, by absolute path.
    """

    def spawn(argv: Sequence[str]) -> Program:
        with request(f"start a container of {image} on {place.node}"):
            made = client.containers.create(
                image,
                entrypoint=list(argv[:1]),
                command=list(argv[1:]),
                network_mode=f"container:{place.container}",
                pid_mode=f"container:{place.container}",
                working_dir=OWN,
                environment={MARK: CLIENT},
                labels=labels.program_of(place.node, place.project),
                stdin_open=True,
                auto_remove=True,
                mem_limit="2g",
                pids_limit=PROCESSES,
                security_opt=[NO_MORE],
                log_config=LogConfig(type="none"),
            )
            made.put_archive("/", archive)
        return _Attached(made)

    return spawn


class _Attached:
    """The command of a container, with its standard streams as pipes."""

    def __init__(self, container: Container) -> None:
        self._container = container
        self._docker = subprocess.Popen(
            ["sh", "-c", _ATTACHED, "sh", str(container.id)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            # Only the harness gets a Ctrl-C; it ends its programs in order.
            start_new_session=True,
        )
        self.stdin, self.stdout = self._docker.stdin, self._docker.stdout
        self.stderr = self._docker.stderr

    def wait(self, timeout: float | None = None) -> int:
        return self._docker.wait(timeout)

    def kill(self) -> None:
        self._docker.kill()
        with suppress(NotFound, DockerException):  # it has ended, or ends with its node
            self._container.remove(force=True)
