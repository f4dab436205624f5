"""Implements a Remote by SSH: one connection for each node, with one channel for each program.

The host key is always checked: a host that is missing from the known_hosts file, or has a different
key there, is refused.
"""

from __future__ import annotations

import contextlib
import logging
import shlex
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import paramiko

from fencepost.harness.remote.agent import AgentRemote
from fencepost.harness.remote.cutoff import cut_off
from fencepost.harness.remote.remote import Program, RemoteError

_OPEN_S = 10.0
_KEEPALIVE_S = 5
# If data stays unacknowledged for longer, the connection counts as lost.
_SILENT_MS = 15_000
# Set explicitly, because the PATH that sshd and sudo pass on differs from host to host.
_PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

# Errors are raised; without this, paramiko would also print them to the terminal.
logging.getLogger("paramiko").addHandler(logging.NullHandler())


@dataclass(frozen=True)
class Host:
    """How to reach a node. Without `key`, the keys of the ssh agent and of ~/.ssh are tried."""

    host: str
    known_hosts: Path
    port: int = 22
    user: str = "root"
    sudo: bool = False
    key: Path | None = None

    def describe(self) -> str:
        return f"{self.user}@{self.host}:{self.port}"


class SshRemote(AgentRemote):
    """A Remote by SSH. After the connection is lost, the next program opens it again."""

    def __init__(self, node: str, host: Host) -> None:
        super().__init__(node)
        self.host = host
        self._opening = threading.Lock()
        self._client: paramiko.SSHClient | None = None

    def spawn(self, argv: Sequence[str]) -> Program:
        sudo = ["sudo", "-n", "--"] if self.host.sudo else []
        with _as_os_error():
            channel = self._transport().open_session(timeout=_OPEN_S)
            with cut_off(channel.close, _OPEN_S):
                channel.exec_command(shlex.join([*sudo, "env", _PATH, *argv]))
        return SshProgram(channel)

    def close(self) -> None:
        super().close()
        with self._opening:
            if self._client is not None:
                self._client.close()
                self._client = None

    def _transport(self) -> paramiko.Transport:
        with self._opening:
            transport = self._client.get_transport() if self._client else None
            if transport is None or not transport.is_active():
                if self._client is not None:
                    self._client.close()
                self._client = self._connect()
                transport = self._client.get_transport()
            assert transport is not None
            return transport

    def _connect(self) -> paramiko.SSHClient:
        host = self.host
        client = paramiko.SSHClient()
        client.set_missing_host_key_policy(_Refuse())
        try:
            client.load_host_keys(str(host.known_hosts))
            client.connect(
                host.host,
                host.port,
                host.user,
                pkey=self._key(host.key) if host.key else None,
                allow_agent=host.key is None,
                look_for_keys=host.key is None,
                sock=_socket(host),
                timeout=_OPEN_S,
                banner_timeout=_OPEN_S,
                auth_timeout=_OPEN_S,
            )
        except _Unknown as error:
            client.close()
            raise self._refused(f"its host key is not in {host.known_hosts}") from error
        except paramiko.BadHostKeyException as error:
            client.close()
            raise self._refused(
                f"its host key differs from the one in {host.known_hosts}: the host was "
                "reinstalled, or this is a different host"
            ) from error
        except paramiko.AuthenticationException as error:
            client.close()
            key = host.key or "any key of the ssh agent or of ~/.ssh"
            raise self._refused(f"{host.user} cannot log in with {key}: {error}") from error
        except (OSError, EOFError, paramiko.SSHException) as error:
            client.close()
            raise OSError(f"cannot connect to {host.describe()}: {error}") from error
        transport = client.get_transport()
        assert transport is not None
        transport.set_keepalive(_KEEPALIVE_S)
        return client

    def _key(self, path: Path) -> paramiko.PKey:
        try:
            return paramiko.PKey.from_path(path)
        except (OSError, ValueError, TypeError, paramiko.SSHException) as error:
            raise self._refused(
                f"cannot use the key {path}: {error}. If it has a passphrase, add it to the ssh "
                "agent and omit `key`"
            ) from error

    def _refused(self, why: str) -> RemoteError:
        return RemoteError(f"{self.node}: {self.host.host} (port {self.host.port}): {why}")


class SshProgram:
    """A program on a node, connected through its channel; implements `Program`."""

    def __init__(self, channel: paramiko.Channel) -> None:
        self._channel = channel
        self.stdin = _In(channel)
        self.stdout = _Out(channel.recv)
        self.stderr = _Out(channel.recv_stderr)

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit code; -1 if the program or its connection was cut off."""
        if not self._channel.status_event.wait(timeout):
            raise subprocess.TimeoutExpired("a program by ssh", timeout or 0.0)
        return self._channel.recv_exit_status()

    def kill(self) -> None:
        self._channel.close()


class _In:
    def __init__(self, channel: paramiko.Channel) -> None:
        self._channel = channel

    def write(self, data: bytes, /) -> int:
        with _as_os_error():
            self._channel.sendall(data)
        return len(data)

    def close(self) -> None:
        with contextlib.suppress(OSError, EOFError, paramiko.SSHException):
            self._channel.shutdown_write()


class _Out:
    def __init__(self, receive: Callable[[int], bytes]) -> None:
        self._receive = receive

    def read(self, size: int = -1, /) -> bytes:
        if size >= 0:
            return self._receive(size)
        found = b""
        while chunk := self._receive(1 << 16):
            found += chunk
        return found

    def close(self) -> None:
        """Do nothing: the channel is closed as a whole."""


class _Unknown(Exception):
    """The host is not in the known_hosts file."""


class _Refuse(paramiko.RejectPolicy):
    def missing_host_key(
        self, client: paramiko.SSHClient, hostname: str, key: paramiko.PKey
    ) -> NoReturn:
        raise _Unknown(hostname)


def _socket(host: Host) -> socket.socket:
    link = socket.create_connection((host.host, host.port), _OPEN_S)
    # Requests are small, and each waits for its answer.
    link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _SILENT_MS)
    return link


@contextlib.contextmanager
def _as_os_error() -> Iterator[None]:
    try:
        yield
    except (EOFError, paramiko.SSHException) as error:
        raise OSError(str(error) or "the connection was lost") from error
