"""Manages nodes on existing machines, reached by SSH, instead of containers.

`up` installs the node program in /opt/fencepost, writes the nodes' names into /etc/hosts, restricts
the ports of servers to the nodes, and starts the servers. `down` removes everything but
/opt/fencepost, also files of older versions. The machines themselves are never started or stopped.
"""

from __future__ import annotations

import io
import json
import subprocess
import tarfile
import tempfile
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from fencepost.harness.cluster import admission, libraries, nodecode
from fencepost.harness.cluster.cluster import Spawn
from fencepost.harness.cluster.docker_engine import Say
from fencepost.harness.cluster.healing import leave
from fencepost.harness.cluster.hostsfile import Hosts
from fencepost.harness.cluster.image import COMPOSE
from fencepost.harness.cluster.nodes import CLIENT, role
from fencepost.harness.errors import Crashed
from fencepost.harness.remote.cutoff import cut_off
from fencepost.harness.remote.remote import Remote, RemoteError
from fencepost.harness.remote.ssh import SshRemote
from fencepost.harness.servers.external import ForeignServer
from fencepost.harness.servers.kinds import KINDS
from fencepost.harness.servers.server import Server
from fencepost.node.places import ADDRESS, ETC_HOSTS, HOME, LIBRARIES, NAME, PROGRAM, PYTHON, RUN

_OLDER_PROGRAMS = ("node", "clocks", "cpu", "lazy", "vdso")
_TOOLS = ("bash", "python3", "tar", "iptables", "iptables-restore", "setsid", "timeout")
_CODE = f"set -e; rm -rf {HOME}/lib; mkdir -p {HOME}; tar -xf - -C {HOME}"
# Older versions put these into the PATH of all users, where `node` hid Node.js.
_LINKS = " ".join(f"/usr/local/bin/{name}" for name in (*_OLDER_PROGRAMS, PROGRAM))
_UNLINK = (
    f'for link in {_LINKS}; do case "$(readlink "$link")" in {HOME}/*) rm -f "$link";; esac; done'
)
_INSTALL_S = 180.0
_SLACK_S = 20.0


class HostsCluster:
    """A cluster of hosts. An error of a host raises Crashed, which names the host."""

    def __init__(self, hosts: Hosts, say: Say = lambda words: None) -> None:
        self._hosts = hosts
        self._say = say
        self._fresh: set[str] = set()
        self._remotes = {node: SshRemote(node, host) for node, host in hosts.hosts.items()}
        self._up: list[str] = []
        self.foreign: dict[str, ForeignServer] = {}

    @property
    def nodes(self) -> list[str]:
        return self._up

    @property
    def versions(self) -> dict[str, str]:
        return {"remote": "ssh", "hosts": str(self._hosts.path)}

    def up(self, nodes: Iterable[str], image: str = "") -> None:
        wanted, self._up = list(nodes), []
        # If one host lacks something, the others are still set up; `down` undoes that.
        self._everywhere(self._install, wanted)
        self._up.sort(key=wanted.index)
        self._provide_client([node for node in self._up if node == "storage" or _client(node)])
        self._everywhere(self._clean)
        self._everywhere(self._name)
        admitted = [self.address(node) for node in self._up]
        self._everywhere(lambda node: admission.admit(self._remotes[node], admitted))
        # Write all names first: the servers of a cluster look each other up when they start.
        self._everywhere(self._start)

    def _clean(self, node: str) -> None:
        if failed := leave(self._remotes[node], node):
            raise Crashed(f"{node}: {'; '.join(failed)}")

    def look(self) -> list[str]:
        self._up = list(self._remotes)
        return self._up

    def down(self) -> None:
        """Undo `up` on every host that answers. Raise Crashed, which names all others."""
        failed: list[str] = []

        def undo(node: str) -> None:
            try:
                if not self._lacking(node, [HOME], "-e"):
                    self._undo(node)
            except (RemoteError, Crashed) as error:
                failed.append(str(error))

        self._everywhere(undo)
        self._up = []
        if failed:
            raise Crashed(
                "some hosts could not be cleaned up; `fencepost heal --hosts FILE` retries: "
                + "; ".join(failed)
            )

    def _undo(self, node: str) -> None:
        if node not in self._fresh:
            # This version's code also undoes the changes of an older version.
            self._feed(node, _CODE, nodecode.archive(KINDS.sound()[0]))
        remote = self._remotes[node]
        failed = leave(remote, node)
        admission.undo(remote)
        self._names(node, "clear")
        remote.run(["bash", "-c", _UNLINK])
        remote.run(["rm", "-f", NAME, ADDRESS])
        remote.run(["rmdir", "--ignore-fail-on-non-empty", RUN], check=False)
        if failed:
            raise Crashed(f"{node}: {'; '.join(failed)}")

    def close(self) -> None:
        """Close the connections; the nodes are not changed."""
        for remote in self._remotes.values():
            remote.close()

    def remote(self, node: str) -> Remote:
        return self._remotes[node]

    def in_image(self, node: str, image: str, archive: bytes) -> Spawn:
        raise Crashed(
            f"{node} is a host of a hosts file, where a client cannot run in an image: omit "
            "--client-image or --hosts"
        )

    def address(self, node: str) -> str:
        return self._hosts.addresses[node]

    def lacking(self, wanted: Iterable[str], nodes: Iterable[str]) -> list[str]:
        """Return the libraries under test that at least one of these nodes lacks."""
        paths = {f"{LIBRARIES}/{library}": library for library in wanted}
        if not paths:
            return []
        found = {paths[path] for node in nodes for path in self._lacking(node, list(paths), "-e")}
        return sorted(found)

    def _everywhere(self, work: Callable[[str], object], nodes: list[str] | None = None) -> None:
        with ThreadPoolExecutor(16) as pool:
            for task in [pool.submit(work, node) for node in (nodes or self._up)]:
                task.result()

    def _install(self, node: str) -> None:
        kind = KINDS.get(role(node))
        lacking = self._lacking(node, [*_TOOLS, *(kind.needs if kind else ())])
        if lacking:
            raise Crashed(f"{node}: {', '.join(lacking)} must be installed on the host first")
        self._feed(node, _CODE, nodecode.archive())
        self._fresh.add(node)
        self._up.append(node)

    def _provide_client(self, nodes: list[str]) -> None:
        """Install the clients' Python environment where it is missing or outdated."""
        pins = (COMPOSE / "requirements.txt").read_bytes()
        lacking = []
        for node in nodes:
            there = self._remotes[node].run(["test", "-x", PYTHON], check=False).code == 0
            if not there or self._has(node) != pins:
                lacking.append(node)
        if not lacking:
            return
        with tempfile.TemporaryDirectory(prefix="fencepost-wheels-") as scratch:
            wheels = Path(scratch) / "wheels"
            libraries.download(COMPOSE / "requirements.txt", wheels, "--only-binary=:all:")
            archive = _tar(wheels)
        script = (
            f"set -e; cd {HOME}; rm -rf client wheels requirements.txt; mkdir wheels; "
            "tar -xf - -C wheels; python3 -m venv client; "
            "client/bin/pip install -q --no-index --no-deps wheels/*; rm -r wheels"
        )
        with ThreadPoolExecutor(4) as pool:
            for task in [pool.submit(self._feed, node, script, archive) for node in lacking]:
                task.result()
        for node in lacking:
            self._remotes[node].put(f"{HOME}/requirements.txt", pins)

    def _has(self, node: str) -> bytes:
        try:
            return self._remotes[node].get(f"{HOME}/requirements.txt")
        except RemoteError:
            return b""

    def _name(self, node: str) -> None:
        """Write the nodes' names into /etc/hosts, on lines that `down` can recognize."""
        self._remotes[node].put(NAME, f"{node}\n".encode())
        self._remotes[node].put(ADDRESS, f"{self.address(node)}\n".encode())
        self._names(node, "set", *(w for name in self._up for w in (self.address(name), name)))

    def _names(self, node: str, *words: str) -> None:
        done = json.loads(self._remotes[node].run([PROGRAM, "names", *words]).out)
        if done["in_place"]:
            self._say(f"{node}: {ETC_HOSTS} is a mount point, so it was written in place")

    def _start(self, node: str) -> None:
        kind = KINDS.get(role(node))
        if kind is None:
            return
        for address in ("127.0.0.1", self.address(node)):
            taken = ["timeout", "2", "bash", "-c", f"echo > /dev/tcp/{address}/{kind.port}"]
            if self._remotes[node].run(taken, check=False).code == 0:
                raise Crashed(
                    f"{node}: another program listens on port {kind.port}: stop the host's own "
                    f"{kind.name}"
                )
        Server(self._remotes[node], kind, {}).start()

    def _lacking(self, node: str, wanted: list[str], test: str = "-x") -> list[str]:
        """Return the commands or paths that the node lacks."""
        script = "; ".join(
            f'[ {test} "$(command -v {name} || echo {name})" ] || echo {name}' for name in wanted
        )
        return self._feed(node, script, b"").split()

    def _feed(self, node: str, script: str, content: bytes) -> str:
        """Run a shell script with `content` on its standard input. Needs no agent on the node."""
        try:
            program = self._remotes[node].spawn(
                ["timeout", f"{_INSTALL_S:.0f}", "sh", "-c", script]
            )
            assert program.stdin and program.stdout and program.stderr
            with cut_off(program.kill, _INSTALL_S + _SLACK_S):
                if content:
                    program.stdin.write(content)
                program.stdin.close()
                out = program.stdout.read().decode(errors="replace")
                stderr = program.stderr.read().decode(errors="replace").strip()
                code = program.wait(_SLACK_S)
        except subprocess.TimeoutExpired as error:
            raise Crashed(f"{node}: the connection timed out: retry") from error
        except OSError as error:
            raise Crashed(f"{node}: {error}") from error
        if code:
            raise Crashed(f"{node}: could not be set up (exit code {code}): {stderr[-500:]}")
        return out


def _client(node: str) -> bool:
    return role(node) == CLIENT


def _tar(folder: Path) -> bytes:
    """Return the files of a folder as a tar archive, as root's: a host may have another user with
    the number of their owner here."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for path in sorted(folder.iterdir()):
            if path.is_file():
                archive.add(path, arcname=path.name, filter=_as_root)
    return buffer.getvalue()


def _as_root(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    member.mode = 0o644
    return member
