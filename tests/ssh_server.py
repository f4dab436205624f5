"""A minimal SSH server on loopback that runs programs on this machine, as sshd does."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import threading
from pathlib import Path

import paramiko


class SshServer:
    """`commands` are the commands that clients asked for, in order of arrival."""

    def __init__(self, folder: Path, path: str = "") -> None:
        self.commands: list[str] = []
        self.host_key = paramiko.ECDSAKey.generate()
        client_key = paramiko.ECDSAKey.generate()
        self.key = folder / "key"
        client_key.write_private_key_file(str(self.key))
        self.lets_in = client_key
        self.known_hosts = folder / "known_hosts"
        self._environment = os.environ | ({"PATH": f"{path}:{os.environ['PATH']}"} if path else {})
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.connections: list[paramiko.Transport] = []
        self.knows(self.host_key)
        threading.Thread(target=self._accept, daemon=True).start()

    def knows(self, key: paramiko.PKey) -> None:
        line = f"[127.0.0.1]:{self.port} {key.get_name()} {key.get_base64()}\n"
        self.known_hosts.write_text(line)

    def cut(self) -> None:
        """Close every connection, as a killed session process does."""
        for transport in self.connections:
            transport.close()
        self.connections = []

    def stop_listening(self) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def close(self) -> None:
        self.stop_listening()
        self.cut()

    def _accept(self) -> None:
        while True:
            try:
                link, _ = self._listener.accept()
            except OSError:
                return
            transport = paramiko.Transport(link)
            transport.add_server_key(self.host_key)
            with contextlib.suppress(paramiko.SSHException, EOFError, OSError):
                transport.start_server(server=_Session(self))
            self.connections.append(transport)

    def start(self, channel: paramiko.Channel, command: str) -> None:
        self.commands.append(command)
        program = subprocess.Popen(
            ["sh", "-c", command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            env=self._environment,
        )
        _Running(channel, program).start()


class _Running:
    """Copy a program's streams over a channel until both sides have closed them."""

    def __init__(self, channel: paramiko.Channel, program: subprocess.Popen[bytes]) -> None:
        self._channel, self._program = channel, program

    def start(self) -> None:
        for work in (self._in, self._out):
            threading.Thread(target=work, daemon=True).start()

    def _in(self) -> None:
        with contextlib.suppress(OSError):
            while chunk := self._channel.recv(65536):
                self._program.stdin.write(chunk)
        self._program.stdin.close()

    def _out(self) -> None:
        errors = threading.Thread(
            target=self._copy, args=(self._program.stderr, self._channel.sendall_stderr)
        )
        errors.start()
        self._copy(self._program.stdout, self._channel.sendall)
        errors.join()
        code = self._program.wait()
        with contextlib.suppress(OSError, EOFError, paramiko.SSHException):
            self._channel.send_exit_status(code)
            self._channel.close()

    def _copy(self, stream, send) -> None:
        with stream:
            while chunk := stream.read(65536):
                with contextlib.suppress(OSError):
                    send(chunk)


class _Session(paramiko.ServerInterface):
    def __init__(self, server: SshServer) -> None:
        self._server = server

    def check_auth_publickey(self, username: str, key: paramiko.PKey) -> int:
        right = key == self._server.lets_in
        return paramiko.AUTH_SUCCESSFUL if right else paramiko.AUTH_FAILED

    def get_allowed_auths(self, username: str) -> str:
        return "publickey"

    def check_channel_request(self, kind: str, chanid: int) -> int:
        return paramiko.OPEN_SUCCEEDED

    def check_channel_exec_request(self, channel: paramiko.Channel, command: bytes) -> bool:
        # Reply first: the program's output must not arrive before the reply.
        timer = threading.Timer(0, self._server.start, (channel, command.decode()))
        timer.start()
        return True
