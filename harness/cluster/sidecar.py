"""A helper container beside a server's container that is not ours, and what the engine does to it.

The helper is of the nodes' image, and shares the network and the processes of that container
(`docker run --network container:X --pid container:X`, as pumba and kubectl debug do it). So rules
and signals reach the server although its image has neither iptables nor a shell, and nothing is
installed in it. What a helper is for stands in its labels: whoever finds one can undo what was done
by it (`fencepost heal`).

The first process of a container takes no SIGSTOP and no SIGKILL from within, not even from beside
it. Those the engine sends. A container that ends takes its network with it, and its helper.
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
from fencepost.harness.cluster.docker_calls import asked
from fencepost.harness.servers.wait import until
from fencepost.node.places import RUN

_LABEL = "io.fencepost.beside."
# Rules, and looking into processes of others; signals are root's by default.
_CAPABILITIES = ["NET_ADMIN", "SYS_PTRACE"]
# Written before the server is killed, and gone once it is started again: in a helper's own files,
# which stay when it ends.
_KILLED = f"{RUN}/killed"
_GONE_S, _END_S = 20.0, 5.0


@dataclass(frozen=True)
class Target:
    """A server in a container that is not ours. All of it stands in its helper's labels.

    `network` is the one by which our clients reach it, "" for a container of the default bridge
    before it was looked at. `kind` "" is one that fencepost does not know.
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
    """The server that a helper with these labels is beside."""
    return Target(**{one.name: labels.get(f"{_LABEL}{one.name}", "") for one in fields(Target)})


class Helper:
    """One server's helper. Whatever the engine refuses raises Crashed.

    `started` is called when the server's container was started again from here.
    """

    def __init__(self, client: DockerClient, target: Target, container: Container) -> None:
        self.target = target
        self._client = client
        self._container = container
        self._lock = threading.Lock()
        self.started: Callable[[], None] = lambda: None

    @staticmethod
    def place(client: DockerClient, project: str, image: str, target: Target) -> Helper:
        """Put a helper beside a server.

        Raises:
            Crashed: the engine refuses it, or what it is for.
        """
        beside = f"container:{target.container}"
        with asked(f"put a helper container beside {target.name}"):
            made = client.containers.create(
                image,
                name=f"{project}_helper-{target.node}",
                # Alone: a child of it would become one of the server's when it is removed.
                entrypoint=["sleep", "infinity"],
                network_mode=beside,
                pid_mode=beside,
                cap_add=_CAPABILITIES,
                mem_limit="512m",
                labels=ours.labels(project, f"helper-{target.node}") | target.labels(),
            )
        helper = Helper(client, target, made)
        try:
            with asked(f"start the helper container beside {target.name}"):
                made.start()
        except BaseException:
            helper.remove()
            raise
        return helper

    def beside(self) -> tuple[str, str] | None:
        """The id of the helper, which is there now, and since when the server's container runs;
        None if that is down."""
        with self._lock, asked(f"put the helper beside {self.target.name} again"):
            since = self.since()
            if since is None:
                return None
            if not self._is_beside(since):
                # It ended with the container, which is another one by now.
                until(lambda: not _running(self._container), _GONE_S)
                self._container.start()
            return str(self._container.id), since

    def _is_beside(self, since: str) -> bool:
        """Whether it was started after the server's container, and still runs."""
        self._container.reload()
        state = self._container.attrs["State"]
        # RFC 3339 in UTC with up to nine digits: compared as text, with equal lengths.
        return bool(state["Running"]) and _moment(state["StartedAt"]) >= _moment(since)

    def since(self) -> str | None:
        """When the server's container was started; None if it does not run."""
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
        """Send a signal to the first process of the server's container; False if it is down."""
        with asked(f"send SIG{name} to {self.target.name}"):
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
        """Kill the server's container, and wait until it is down; False if it was."""
        if self.since() is None:
            return False
        self._mark_killed()
        if not self.signal("KILL"):
            return False
        return until(lambda: self.since() is None, _GONE_S)

    def start(self) -> None:
        """Start the server's container, unless it runs."""
        if self.since() is None:
            with asked(f"start {self.target.name} again"):
                self._theirs().start()
        self.beside()
        self._unmark_killed()
        self.started()

    @property
    def killed(self) -> bool:
        """Whether the server's container is down because it was killed from here."""
        if not self._state() or self.since() is not None:
            return False
        with asked(f"show the files of the helper beside {self.target.name}"):
            try:
                self._container.get_archive(_KILLED)
            except NotFound:
                return False
        return True

    @property
    def mortal(self) -> bool:
        """Whether Docker removes the server's container when it ends."""
        with asked(f"show {self.target.name}"):
            return bool(self._theirs().attrs["HostConfig"].get("AutoRemove"))

    def address(self) -> str:
        """The server's address in the network by which it is reached. It may have another one after
        each start."""
        with asked(f"show {self.target.name}"):
            networks = self._theirs().attrs["NetworkSettings"]["Networks"]
        return str(networks.get(self.target.network, {}).get("IPAddress", ""))

    def logs(self, since_s: int) -> bytes:
        """What the server's container wrote to its standard output and error since then."""
        with asked(f"give the log of {self.target.name}"):
            said: bytes = self._theirs().logs(since=since_s)
        return said

    def remove(self) -> None:
        """Remove the helper, once what was run in it has ended: a child of what is killed would
        become one of the server's own."""
        until(lambda: not self._busy(), _END_S)
        with asked(f"remove the helper beside {self.target.name}"):
            docker_calls.remove(self._container)

    def _busy(self) -> bool:
        """Whether more than its first process runs in it."""
        with asked(f"list the processes of the helper beside {self.target.name}"):
            try:
                return len(self._container.top()["Processes"]) > 1
            except APIError:
                return False  # it has ended

    def _mark_killed(self) -> None:
        self._put(_KILLED, b"")

    def _unmark_killed(self) -> None:
        with asked(f"reach the helper beside {self.target.name}"):
            self._container.exec_run(["rm", "-f", _KILLED])

    def _put(self, path: str, content: bytes) -> None:
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w") as tar:
            member = tarfile.TarInfo(path.lstrip("/"))
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
        with asked(f"write into the helper beside {self.target.name}"):
            self._container.put_archive("/", buffer.getvalue())


def helpers(client: DockerClient, project: str | None = None) -> list[Helper]:
    """Every helper of one cluster of ours, or of all, also those that have ended."""
    with asked("list its containers"):
        found = ours.containers(client, project)
    return [Helper(client, target_of(one.labels), one) for one in found if is_helper(one)]


def is_helper(container: Container) -> bool:
    return f"{_LABEL}node" in container.labels


def _running(container: Container) -> bool:
    container.reload()
    return bool(container.attrs["State"]["Running"])


def _moment(text: str) -> tuple[str, str]:
    """A time as Docker writes it, so that two can be compared: it leaves zeros at the end out."""
    seconds, _, parts = text.rstrip("Z").partition(".")
    return seconds, parts.ljust(9, "0")
