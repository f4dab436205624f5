"""A Remote into a host, by SSH: one connection a node, which is kept, and opened again when lost.

Host keys are checked: one that is not known, or another than is known, ends it.
"""

from __future__ import annotations

import contextlib
import shlex
import subprocess
import threading
from collections.abc import Sequence
from dataclasses import dataclass

import paramiko

from harness.remote.agent import AgentRemote
from harness.remote.remote import RemoteError

_CONNECT_S = 10.0
# A connection whose other end is gone is noticed after some of these.
_KEEPALIVE_S = 5


@dataclass(frozen=True)
class Host:
    """How a host is reached. `key`: a private key's file, or the key; None: the agent's, or none.

    `known_hosts`: a file, or the host's own key. `sudo`: whether the user has to become root.
    """

    host: str
    port: int = 22
    user: str = "root"
    key: str | paramiko.PKey | None = None
    known_hosts: str | paramiko.PKey = "~/.ssh/known_hosts"
    sudo: bool = False


class SshRemote(AgentRemote):
    def __init__(self, node: str, host: Host) -> None:
        super().__init__(node)
        self.host = host
        self._client: paramiko.SSHClient | None = None
        self._connecting = threading.Lock()

    def spawn(self, argv: Sequence[str]) -> SshProgram:
        """Start a program; every argument reaches it as it is.

        Raises:
            RemoteError: the host can not be reached, or its key is not known.
        """
        command = shlex.join(("sudo", "-n", *argv) if self.host.sudo else argv)
        with self._connecting:
            try:
                channel = self._transport().open_session(timeout=_CONNECT_S)
                channel.exec_command(command)
            except (paramiko.SSHException, OSError, EOFError) as error:
                self._disconnect()
                raise RemoteError(f"{self.node}: {self._where()}: {_why(error)}") from error
        return SshProgram(channel)

    def close(self) -> None:
        super().close()
        with self._connecting:
            self._disconnect()

    def _transport(self) -> paramiko.Transport:
        transport = self._client.get_transport() if self._client else None
        if transport is None or not transport.is_active():
            self._disconnect()
            self._client = self._connect()
            transport = self._client.get_transport()
            assert transport is not None
            transport.set_keepalive(_KEEPALIVE_S)
        return transport

    def _connect(self) -> paramiko.SSHClient:
        host = self.host
        client = paramiko.SSHClient()
        client.set_missing_host_key_policy(paramiko.RejectPolicy())
        if isinstance(host.known_hosts, str):
            client.load_system_host_keys(host.known_hosts)
        else:
            name = host.host if host.port == 22 else f"[{host.host}]:{host.port}"
            key = host.known_hosts
            client.get_host_keys().add(name, key.get_name(), key)
        given = isinstance(host.key, paramiko.PKey)
        client.connect(
            host.host,
            host.port,
            host.user,
            pkey=host.key if isinstance(host.key, paramiko.PKey) else None,
            key_filename=host.key if isinstance(host.key, str) else None,
            allow_agent=not given,
            look_for_keys=host.key is None,
            timeout=_CONNECT_S,
            banner_timeout=_CONNECT_S,
            auth_timeout=_CONNECT_S,
        )
        return client

    def _disconnect(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            client.close()

    def _where(self) -> str:
        return f"ssh {self.host.user}@{self.host.host} port {self.host.port}"


class SshProgram:
    """A program at the other end of an SSH channel."""

    def __init__(self, channel: paramiko.Channel) -> None:
        self._channel = channel
        self.stdin = _In(channel)
        self.stdout = _Out(channel)
        self.stderr = _Err(channel)

    def wait(self, timeout: float | None = None) -> int:
        if not self._channel.status_event.wait(timeout):
            raise subprocess.TimeoutExpired("ssh", timeout or 0.0)
        return self._channel.exit_status

    def kill(self) -> None:
        self._channel.close()
        # Of a connection that is gone, no status comes any more.
        self._channel.status_event.set()


class _In:
    def __init__(self, channel: paramiko.Channel) -> None:
        self._channel = channel

    def write(self, data: bytes, /) -> int:
        self._channel.sendall(data)
        return len(data)

    def close(self) -> None:
        with contextlib.suppress(OSError, EOFError):
            self._channel.shutdown_write()


class _Out:
    def __init__(self, channel: paramiko.Channel) -> None:
        self._channel = channel

    def fileno(self) -> int:
        return self._channel.fileno()

    def read(self, size: int = -1, /) -> bytes:
        return self._channel.recv(size)

    def close(self) -> None:
        """It ends with the channel."""


class _Err(_Out):
    def read(self, size: int = -1, /) -> bytes:
        return self._channel.recv_stderr(size)


def _why(error: Exception) -> str:
    """An error of paramiko's in words that say what to do."""
    if isinstance(error, paramiko.BadHostKeyException):
        return (
            "its host key is not the one that is known. Somebody else may be answering in its "
            "place; if the host has a new key, put that into known_hosts"
        )
    if isinstance(error, paramiko.AuthenticationException):
        return "it refuses the key that it was shown (passwords are not used)"
    if "not found in known_hosts" in str(error):
        return "its host key is not in known_hosts: `ssh-keyscan` shows it, check it and add it"
    return str(error) or type(error).__name__
