"""Reads the file of `--hosts`, which names the machine of each node.

    [defaults]
    key = "~/.ssh/fencepost"

    [nodes.redis-1]
    host = "10.0.0.1"

`defaults` apply to every node that does not set the field itself. docs/ssh.md has every field.
"""

from __future__ import annotations

import re
import socket
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec

from fencepost import plainfile
from fencepost.harness.cluster.nodes import every
from fencepost.harness.errors import BadArguments
from fencepost.harness.remote.ssh import Host
from fencepost.harness.servers.kinds import KINDS


class _Shared(msgspec.Struct, forbid_unknown_fields=True):
    """The fields that `defaults` may set for all nodes."""

    port: Annotated[int, msgspec.Meta(ge=1, le=65535)] = 22
    user: str = "root"
    sudo: bool = False
    key: str = ""
    known_hosts: str = "~/.ssh/known_hosts"


class _Node(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    host: Annotated[str, msgspec.Meta(min_length=1)]
    address: str = ""
    port: Annotated[int, msgspec.Meta(ge=1, le=65535)] = 22
    user: str = "root"
    sudo: bool = False
    key: str = ""
    known_hosts: str = "~/.ssh/known_hosts"


class _File(msgspec.Struct, forbid_unknown_fields=True):
    nodes: dict[str, Any] = {}
    defaults: dict[str, Any] = {}


@dataclass(frozen=True)
class Hosts:
    """The host of each node, and the IPv4 address at which the other nodes reach it."""

    path: Path
    hosts: dict[str, Host]
    addresses: dict[str, str]

    def must_name(self, nodes: Iterable[str]) -> None:
        """Raise BadArguments if the file lacks one of these nodes."""
        lacking = [node for node in nodes if node not in self.hosts]
        if lacking:
            raise BadArguments(
                f"{self.path} does not name {', '.join(lacking)}, which this test needs: add "
                f"[nodes.{lacking[0]}] with its host"
            )


def read(path: Path) -> Hosts:
    """Read the file. Raise BadArguments, which names the wrong line or field."""
    try:
        found = tomllib.loads(plainfile.read(path).decode())
    except OSError as error:
        raise BadArguments(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:  # tomllib's error has line and column
        raise BadArguments(f"{path} is not a TOML file: {error}") from error
    return _Reader(path).hosts(found)


Table = TypeVar("Table", bound=msgspec.Struct)


class _Reader:
    def __init__(self, path: Path) -> None:
        self._path = path

    def hosts(self, found: dict[str, Any]) -> Hosts:
        file = self._decode("", found, _File)
        self._decode("defaults", file.defaults, _Shared)
        if not file.nodes:
            raise self._bad("nodes", "names no node: add for example [nodes.redis-1]")
        hosts, addresses = {}, {}
        known = every()
        for name, own in file.nodes.items():
            where = f"nodes.{name}"
            # Its kind may be in a package that cannot be loaded. `heal` still cleans up the node.
            if name not in known and not KINDS.sound()[1]:
                raise self._bad(where, f"there is no such node; choose from: {', '.join(known)}")
            merged = file.defaults | own if isinstance(own, dict) else own
            node = self._decode(where, merged, _Node)
            hosts[name] = self._host(where, node)
            addresses[name] = self._address(where, node.address or node.host)
        self._must_differ(addresses)
        return Hosts(self._path, hosts, addresses)

    def _decode(self, where: str, table: Any, type: type[Table]) -> Table:
        try:
            return msgspec.convert(table, type)
        except msgspec.ValidationError as error:
            what, _, field = str(error).partition(" - at `$")
            place = (where + field.rstrip("`")).removeprefix(".") or "the file"
            if "unknown field" in what:
                what += f"; choose from: {', '.join(type.__struct_fields__)}"
            raise self._bad(place, re.sub("^Object ", "", what)) from error

    def _host(self, where: str, node: _Node) -> Host:
        if node.user != "root" and not node.sudo:
            raise self._bad(
                where, f"{node.user} is not root: set sudo = true if `sudo -n` works there"
            )
        known_hosts = self._file(f"{where}.known_hosts", node.known_hosts)
        key = self._file(f"{where}.key", node.key) if node.key else None
        return Host(node.host, known_hosts, node.port, node.user, node.sudo, key)

    def _file(self, where: str, text: str) -> Path:
        # Relative to the file that names it.
        path = self._path.parent / Path(text).expanduser()
        try:
            path.open("rb").close()
        except OSError as error:
            raise self._bad(where, f"{path} cannot be read: {error.strerror}") from error
        return path

    def _address(self, where: str, text: str) -> str:
        try:
            return socket.gethostbyname(text)
        except (OSError, UnicodeError) as error:
            raise self._bad(
                f"{where}.address",
                f"{text} has no IPv4 address here ({error}): write the address at which the "
                "other nodes reach it",
            ) from error

    def _must_differ(self, addresses: dict[str, str]) -> None:
        nodes: dict[str, str] = {}
        for node, address in addresses.items():
            if address in nodes:
                raise self._bad(
                    f"nodes.{node}",
                    f"has the same address ({address}) as {nodes[address]}: each node needs its "
                    "own host, or links between them could not be cut",
                )
            nodes[address] = node

    def _bad(self, where: str, what: str) -> BadArguments:
        return BadArguments(f"{self._path}: {where}: {what}")
