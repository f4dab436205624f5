"""The file of `--hosts`: which machines that exist already are which nodes.

    [defaults]
    key = "~/.ssh/fencepost"

    [nodes.redis-1]
    host = "10.0.0.1"

`defaults` are for every node that does not say otherwise. docs/ssh.md has every field.
"""

from __future__ import annotations

import socket
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fencepost.harness.cluster.compose import NODES
from fencepost.harness.errors import BadArguments
from fencepost.harness.remote.ssh import Host

_KINDS: dict[str, type] = {
    "host": str, "port": int, "user": str, "sudo": bool, "key": str, "known_hosts": str,
    "address": str,
}  # fmt: skip
_SHARED = ("port", "user", "sudo", "key", "known_hosts")
_KNOWN_HOSTS = "~/.ssh/known_hosts"


@dataclass(frozen=True)
class Hosts:
    """Hosts by node, and each one's address: the IPv4 address by which the others see it."""

    path: Path
    hosts: dict[str, Host]
    addresses: dict[str, str]

    def must_name(self, nodes: Iterable[str]) -> None:
        """Raises BadArguments where a node that is needed is not in the file."""
        lacking = [node for node in nodes if node not in self.hosts]
        if lacking:
            raise BadArguments(
                f"{self.path} does not name {', '.join(lacking)}, which this needs: write "
                f"[nodes.{lacking[0]}] with its host"
            )


def read(path: Path) -> Hosts:
    """Raises BadArguments, with the file and the line or the field, where it makes no sense."""
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadArguments(f"{path} can not be read: {error.strerror}") from error
    except ValueError as error:  # tomllib's says line and column
        raise BadArguments(f"{path} is no TOML file: {error}") from error
    return _Reader(path).hosts(found)


class _Reader:
    def __init__(self, path: Path) -> None:
        self._path = path

    def hosts(self, found: dict[str, Any]) -> Hosts:
        self._known(found, "the file", ("defaults", "nodes"))
        defaults = self._table(found, "defaults")
        self._fields(defaults, "defaults", _SHARED)
        nodes = self._table(found, "nodes")
        if not nodes:
            raise self._bad("nodes", "names no node: write [nodes.redis-1] and so on")
        self._known(nodes, "nodes", NODES)
        hosts, addresses = {}, {}
        for node in nodes:
            where = f"nodes.{node}"
            own = self._table(nodes, node, where)
            self._fields(own, where, tuple(_KINDS))
            if not own.get("host"):
                raise self._bad(where, "has no host")
            given = defaults | own
            hosts[node] = self._host(where, given)
            addresses[node] = self._address(where, given.get("address", given["host"]))
        self._apart(addresses)
        return Hosts(self._path, hosts, addresses)

    def _host(self, where: str, given: dict[str, Any]) -> Host:
        port, user = given.get("port", 22), given.get("user", "root")
        sudo = given.get("sudo", False)
        if not 0 < port < 65536:
            raise self._bad(f"{where}.port", f"{port} is no port")
        if user != "root" and not sudo:
            raise self._bad(where, f"{user} is not root: write sudo = true, where `sudo -n` works")
        key = given.get("key")
        known_hosts = self._file(f"{where}.known_hosts", given.get("known_hosts", _KNOWN_HOSTS))
        file = self._file(f"{where}.key", key) if key else None
        return Host(given["host"], known_hosts, port, user, sudo, file)

    def _file(self, where: str, text: str) -> Path:
        # As written in a file, relative to that file.
        path = self._path.parent / Path(text).expanduser()
        try:
            path.open("rb").close()
        except OSError as error:
            raise self._bad(where, f"{path} can not be read: {error.strerror}") from error
        return path

    def _address(self, where: str, text: str) -> str:
        try:
            return socket.gethostbyname(text)
        except OSError as error:
            raise self._bad(
                f"{where}.address",
                f"{text} has no IPv4 address here ({error}): write the address by which the "
                "other nodes see it",
            ) from error

    def _apart(self, addresses: dict[str, str]) -> None:
        nodes: dict[str, str] = {}
        for node, address in addresses.items():
            if address in nodes:
                raise self._bad(
                    f"nodes.{node}",
                    f"has the address {address} of {nodes[address]}: each node is a host of its "
                    "own, or nothing could be cut between them",
                )
            nodes[address] = node

    def _table(self, found: dict[str, Any], name: str, where: str = "") -> dict[str, Any]:
        table = found.get(name, {})
        if not isinstance(table, dict):
            raise self._bad(where or name, "is no table")
        return table

    def _fields(self, table: dict[str, Any], where: str, names: tuple[str, ...]) -> None:
        self._known(table, where, names)
        for name, value in table.items():
            kind = _KINDS[name]
            if type(value) is not kind:
                raise self._bad(f"{where}.{name}", f"{value!r} is no {_WORDS[kind]}")

    def _known(self, table: dict[str, Any], where: str, names: tuple[str, ...]) -> None:
        for name in table:
            if name not in names:
                raise self._bad(where, f"has no {name!r}; choose from: {', '.join(names)}")

    def _bad(self, where: str, what: str) -> BadArguments:
        return BadArguments(f"{self._path}: {where} {what}")


_WORDS: dict[type, str] = {str: "string", int: "whole number", bool: "true or false"}
