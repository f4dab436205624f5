"""A cluster of hosts that are there already, reached by SSH and named in a file of TOML.

    user = "root"                         # for all nodes; the same keys as below
    key = "~/.ssh/id_ed25519"

    [nodes]
    redis-1 = "10.0.0.11"
    client-1 = {host = "10.0.0.21", port = 2222, user = "admin", sudo = true, address = "10.1.0.5"}

`address` is where the other nodes reach a node, if that is not `host`. docs/ssh.md says what the
hosts need. fencepost puts its own tools into /opt/fencepost and starts and stops the servers; the
hosts, and what else runs there, stay as they are.
"""

from __future__ import annotations

import io
import os
import tarfile
import tomllib
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.cluster.compose import NODES, role
from harness.cluster.image import COMPOSE
from harness.db.kinds import KINDS
from harness.db.server import Server
from harness.errors import BadArguments, Crashed
from harness.remote.remote import Remote, RemoteError
from harness.remote.ssh import Host, SshRemote
from nemesis.chains import clear

_KEYS: dict[str, type] = {
    "host": str,
    "port": int,
    "user": str,
    "key": str,
    "known_hosts": str,
    "sudo": bool,
    "address": str,
}
_COMMON = ("port", "user", "key", "known_hosts", "sudo")
_TOOLS = "/opt/fencepost"
_LINKS = ("node", "clocks", "cpu", "lazy", "vdso")
_NEEDS = {
    "redis": ("redis-server", "redis-cli"),
    "zookeeper": ("/usr/share/zookeeper/bin/zkServer.sh", "nc"),
    "etcd": ("etcd", "etcdctl"),
    "postgres": ("/usr/lib/postgresql/15/bin/postgres",),
    "client": (f"{_TOOLS}/client/bin/python",),
}
_ALL_NEED = ("python3", "bash", "iptables", "pgrep", "setsid")


@dataclass(frozen=True)
class Entry:
    """One node's host, and the address by which the other nodes reach it."""

    host: Host
    address: str


def read(path: Path) -> dict[str, Entry]:
    """The hosts of a file, by node.

    Raises:
        BadArguments: naming the file and what in it can not be.
    """
    try:
        with path.open("rb") as file:
            content = tomllib.load(file)
    except OSError as error:
        raise BadArguments(f"hosts file {path} can not be read: {error.strerror}") from error
    except ValueError as error:
        raise BadArguments(f"hosts file {path} is no TOML: {error}") from error
    nodes = content.pop("nodes", None)
    if not isinstance(nodes, dict) or not nodes:
        raise BadArguments(
            f'hosts file {path} names no nodes: write [nodes], redis-1 = "10.0.0.11"'
        )
    _known(path, "the file", content, _COMMON)
    return {node: _entry(path, node, given, content) for node, given in nodes.items()}


def _entry(path: Path, node: str, given: Any, common: dict[str, Any]) -> Entry:
    if node not in NODES:
        raise BadArguments(f"hosts file {path}: there is no node {node!r}; there are {_words()}")
    row = {"host": given} if isinstance(given, str) else given
    if not isinstance(row, dict):
        raise BadArguments(f"hosts file {path}: {node}: a host's name, or a table with host in it")
    _known(path, node, row, tuple(_KEYS))
    row = common | row
    if not row.get("host"):
        raise BadArguments(f"hosts file {path}: {node} has no host")
    address = row.pop("address", row["host"])
    for name in ("key", "known_hosts"):
        if name in row:
            row[name] = os.path.expanduser(row[name])
    return Entry(Host(**{"known_hosts": os.path.expanduser("~/.ssh/known_hosts")} | row), address)


def _known(path: Path, where: str, row: dict[str, Any], keys: Iterable[str]) -> None:
    for name, value in row.items():
        if name not in keys:
            raise BadArguments(
                f"hosts file {path}: {where}: there is no {name!r}; choose from {', '.join(keys)}"
            )
        if type(value) is not _KEYS[name]:
            what = {str: "text", int: "a number", bool: "true or false"}[_KEYS[name]]
            raise BadArguments(f"hosts file {path}: {where}: {name} is {what}, not {value!r}")


def _words() -> str:
    return f"{', '.join(NODES[:3])} ... {NODES[-1]}"


class HostsCluster:
    """Raises Crashed where a host lacks something, and RemoteError where it does not answer."""

    def __init__(self, path: Path, entries: dict[str, Entry]) -> None:
        self._path = path
        self._entries = entries
        self._remotes = {node: SshRemote(node, entry.host) for node, entry in entries.items()}
        self._up = list(entries)

    @property
    def nodes(self) -> list[str]:
        return self._up

    @property
    def versions(self) -> dict[str, str]:
        return {"remote": "ssh", "hosts": str(self._path)}

    def must_have(self, nodes: Iterable[str]) -> None:
        """Raises BadArguments where the file lacks a node."""
        lacking = [node for node in nodes if node not in self._entries]
        if lacking:
            raise BadArguments(f"hosts file {self._path} has no {', '.join(lacking)}")

    def up(self, nodes: Iterable[str]) -> None:
        """Put the tools on these nodes and start their servers, if they are not running."""
        self._up = list(nodes)
        self._each(self._install)
        self._each(self._names)
        self._each(self._start)

    def down(self) -> None:
        """Stop the servers and take fencepost's rules off; the hosts stay as they are."""

        def stop(node: str) -> None:
            remote = self._remotes[node]
            clear(remote)
            if kind := KINDS.get(role(node)):
                Server(remote, kind, {}).kill()
            remote.run(["rm", "-rf", "/run/fencepost"])
            remote.close()

        self._each(stop)

    def remote(self, node: str) -> Remote:
        return self._remotes[node]

    def address(self, node: str) -> str:
        return self._entries[node].address

    def _each(self, work: Callable[[str], None]) -> None:
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(work, self._up))

    def _install(self, node: str) -> None:
        unpack = f"mkdir -p {_TOOLS} && tar -x -C {_TOOLS} && cd {_TOOLS} && chmod +x *.sh *.py"
        link = "".join(
            f" && ln -sf {_TOOLS}/{name}.{'sh' if name == 'node' else 'py'} /usr/local/bin/{name}"
            for name in _LINKS
        )
        program = self._remotes[node].spawn(["sh", "-c", unpack + link])
        assert program.stdin and program.stderr
        program.stdin.write(_tools())
        program.stdin.close()
        code = program.wait(60)
        if code:
            said = (program.stderr.read(4096) or b"").decode(errors="replace").strip()
            program.kill()
            raise Crashed(f"{node}: fencepost's tools can not be put into {_TOOLS}: {said}")
        program.kill()
        wanted = (*_ALL_NEED, *_NEEDS[role(node)])
        look = 'for name in "$@"; do command -v "$name" > /dev/null || echo "$name"; done'
        lacking = self._remotes[node].run(["bash", "-c", look, "look", *wanted]).out.split()
        if lacking:
            raise Crashed(
                f"{node} ({self._entries[node].host.host}) lacks {', '.join(lacking)}: "
                "docs/ssh.md says what hosts need"
            )

    def _names(self, node: str) -> None:
        """Servers of one cluster name each other as their nodes are named."""
        kind = role(node)
        if kind not in KINDS or not KINDS[kind].leads:
            return
        for other in (name for name in self._up if role(name) == kind):
            if self._remotes[node].run(["getent", "hosts", other], check=False).code:
                raise Crashed(
                    f"{node} does not know {other} by that name: put it into /etc/hosts there, "
                    f"{self._entries[other].address} {other}"
                )

    def _start(self, node: str) -> None:
        if kind := KINDS.get(role(node)):
            server = Server(self._remotes[node], kind, {"NODE": node})
            try:
                server.start()
            except RemoteError as error:
                raise Crashed(f"{node}: its server does not start: {error}") from error


def _tools() -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for file in sorted((COMPOSE / "node").glob("*.*")):
            archive.add(file, arcname=file.name)
    return buffer.getvalue()
