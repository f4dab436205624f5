"""Manages the sidecar of an external server's container, and controls that container.

The sidecar has the nodes' image, and shares the network and the processes of that container
(`docker run --network container:X --pid container:X`, as pumba and kubectl debug do). So rules and
signals reach the server without installing anything in it, although its image may have neither
iptables nor a shell. The labels of a sidecar describe its server, so `fencepost heal` can undo the
changes of a killed command.

The first process of a container accepts SIGSTOP and SIGKILL only from the engine, not from a
sidecar. When a container ends, its network and its sidecar end too.
"""

from __future__ import annotations

import io
import tarfile
import threading
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields

from docker import DockerClient
from docker.errors import APIError, NotFound
from docker.models.containers import Container

from fencepost.harness.cluster import docker_calls
from fencepost.harness.cluster import labels as ours
from fencepost.harness.cluster.docker_calls import request
from fencepost.harness.cluster.services import NO_MORE, PROCESSES
from fencepost.harness.servers.wait import until
from fencepost.node.places import RUN

_LABEL = "io.fencepost.beside."
# For rules, and for inspecting other processes; root may send signals by default.
_CAPABILITIES = ["NET_ADMIN", "SYS_PTRACE"]
# Exists in the sidecar's files from a kill of the server until its restart. The files of a
# container outlive its end.
_KILLED = f"{RUN}/killed"
_GONE_S, _END_S = 20.0, 5.0


@dataclass(frozen=True)
class Target:
    """An external server, as the labels of its sidecar describe it.

    `network` is the one through which clients reach it. `kind` "": fencepost does not know it.
    """

    node: str
    container: str
    name: str
    image: str
    kind: str
    port: str
    network: str

    def labels(self) -> dict[str, str]:
        return {f"{_LABEL}{name}": value for name, value in asdict(self).items()}


def target_of(labels: dict[str, str]) -> Target:
    """Return the server of a sidecar with these labels."""
    return Target(**{one.name: labels.get(f"{_LABEL}{one.name}", "") for one in fields(Target)})


class Sidecar:
    """The sidecar of one server. An error of the engine raises Crashed.

    `started` is called after `start` has restarted the server's container.
    """

    def __init__(self, client: DockerClient, target: Target, container: Container) -> None:
        self.target = target
        self._client = client
        self._container = container
        self._lock = threading.Lock()
        self.started: Callable[[], None] = lambda: None

    @staticmethod
    def place(client: DockerClient, project: str, image: str, target: Target) -> Sidecar:
        """Start a sidecar for a server.

        Raises:
            Crashed: the engine refuses to create or start it.
        """
        server = f"container:{target.container}"
        with request(f"create a sidecar of {target.name}"):
            made = client.containers.create(
                image,
                name=f"{project}_helper-{target.node}",
                # A single process: when the sidecar is removed, the server would adopt a child.
                entrypoint=["sleep", "infinity"],
                network_mode=server,
                pid_mode=server,
                cap_add=_CAPABILITIES,
                mem_limit="512m",
                pids_limit=PROCESSES,
                security_opt=[NO_MORE],
                labels=ours.labels(project, f"helper-{target.node}") | target.labels(),
            )
        sidecar = Sidecar(client, target, made)
        try:
            with request(f"start the sidecar of {target.name}"):
                made.start()
        except BaseException:
            sidecar.remove()
            raise
        return sidecar

    def beside(self) -> tuple[str, str] | None:
        """Restart the sidecar if it has ended with the server's container.

        Return its id and the start time of that container; None if the container is down.
        """
        with self._lock, request(f"restart the sidecar of {self.target.name}"):
            since = self.since()
            if since is None:
                return None
            if not self._is_beside(since):
                # It ended with the server's container, which was restarted.
                until(lambda: not _running(self._container), _GONE_S)
                self._container.start()
            return str(self._container.id), since

    def _is_beside(self, since: str) -> bool:
        """Return whether it was started after the server's container, and still runs."""
        self._container.reload()
        state = self._container.attrs["State"]
        # RFC 3339 in UTC with up to nine fraction digits: comparable as text of equal length.
        return bool(state["Running"]) and _moment(state["StartedAt"]) >= _moment(since)

    def since(self) -> str | None:
        """Return when the server's container was started; None if it does not run."""
        state = self._state()
        return str(state["StartedAt"]) if state.get("Running") else None

    def _state(self) -> dict[str, object]:
        try:
            state: dict[str, object] = self._theirs().attrs["State"]
        except NotFound:
            return {}
        return state

    def _theirs(self) -> Container:
        return self._client.containers.get(self.target.container)

    def signal(self, name: str) -> bool:
        """Send a signal to the container's first process; return False if the container is down."""
        with request(f"send SIG{name} to {self.target.name}"):
            try:
                self._theirs().kill(signal=name)
            except NotFound:
                return False
            except APIError as error:
                if "is not running" in str(error):
                    return False
                raise
        return True

    def kill(self) -> bool:
        """Kill the server's container, and wait until it ends; return False if it was down."""
        if self.since() is None:
            return False
        self._mark_killed()
        if not self.signal("KILL"):
            return False
        return until(lambda: self.since() is None, _GONE_S)

    def start(self) -> None:
        """Start the server's container, unless it runs."""
        if self.since() is None:
            with request(f"restart {self.target.name}"):
                self._theirs().start()
        self.beside()
        self._unmark_killed()
        self.started()

    @property
    def killed(self) -> bool:
        """Whether the server's container is down because `kill` killed it."""
        if not self._state() or self.since() is not None:
            return False
        with request(f"read a file of the sidecar of {self.target.name}"):
            try:
                self._container.get_archive(_KILLED)
            except NotFound:
                return False
        return True

    @property
    def mortal(self) -> bool:
        """Whether Docker removes the server's container when it ends."""
        with request(f"inspect {self.target.name}"):
            return bool(self._theirs().attrs["HostConfig"].get("AutoRemove"))

    def address(self) -> str:
        """Return the server's address in the shared network; it may change with each restart."""
        with request(f"inspect {self.target.name}"):
            networks = self._theirs().attrs["NetworkSettings"]["Networks"]
        return str(networks.get(self.target.network, {}).get("IPAddress", ""))

    def logs(self, since_s: int) -> bytes:
        """Return the output of the server's container since a Unix time, in s."""
        with request(f"return the log of {self.target.name}"):
            output: bytes = self._theirs().logs(since=since_s)
        return output

    def remove(self) -> None:
        """Remove the sidecar after its programs have ended: the server would adopt the programs."""
        until(lambda: not self._busy(), _END_S)
        with request(f"remove the sidecar of {self.target.name}"):
            docker_calls.remove(self._container)

    def _busy(self) -> bool:
        """Return whether a program runs in it, besides its first process."""
        with request(f"list the processes of the sidecar of {self.target.name}"):
            try:
                return len(self._container.top()["Processes"]) > 1
            except APIError:
                return False  # it has ended

    def _unmark_killed(self) -> None:
        with request(f"run a command in the sidecar of {self.target.name}"):
            self._container.exec_run(["rm", "-f", _KILLED])

    def _mark_killed(self) -> None:
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w") as tar:
            tar.addfile(tarfile.TarInfo(_KILLED.lstrip("/")))
        with request(f"write into the sidecar of {self.target.name}"):
            self._container.put_archive("/", buffer.getvalue())


def sidecars(client: DockerClient, project: str | None = None) -> list[Sidecar]:
    """Return the sidecars of one cluster, or of all, also those that have ended."""
    with request("list its containers"):
        found = ours.containers(client, project)
    return [Sidecar(client, target_of(one.labels), one) for one in found if is_sidecar(one)]


def is_sidecar(container: Container) -> bool:
    return f"{_LABEL}node" in container.labels


def _running(container: Container) -> bool:
    container.reload()
    return bool(container.attrs["State"]["Running"])


def _moment(text: str) -> tuple[str, str]:
    """Make a time of Docker comparable: Docker omits trailing zeros of the fraction."""
    seconds, _, parts = text.rstrip("Z").partition(".")
    return seconds, parts.ljust(9, "0")
