"""`fencepost serve`: serves the results folder to a browser."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Callable
from contextlib import suppress
from importlib.util import find_spec
from ipaddress import IPv6Address, ip_address
from threading import Timer
from types import FrameType
from typing import Annotated

import typer

from fencepost.harness.command import screen
from fencepost.harness.command.options import Results
from fencepost.harness.errors import BadArguments, Crashed
from fencepost.harness.results.results import root

_OPEN_S = 2
"""How long responses in progress may take when the command ends."""


def serve(
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="The port to listen on; 0: any free port.")
    ] = 8080,
    host: Annotated[
        str,
        typer.Option(
            metavar="ADDRESS",
            help="The address to listen on. There is no password: everyone who can reach the "
            "address can see and delete all runs.",
        ),
    ] = "127.0.0.1",
    results: Results = None,
) -> None:
    if lacking := [name for name in ("starlette", "uvicorn") if find_spec(name) is None]:
        raise BadArguments(f"serve needs {' and '.join(lacking)}: pip install 'fencepost[serve]'")
    if not root().is_dir():
        raise BadArguments(
            f"the results folder {root()} does not exist: run a test, or name another folder with "
            "--results"
        )
    with _listening(host, port) as listening:
        import uvicorn

        from fencepost.harness.web.patience import Protocol
        from fencepost.harness.web.site import site

        settings = uvicorn.Config(
            site(), http=Protocol, log_level="warning", access_log=False,
            timeout_graceful_shutdown=_OPEN_S,
        )  # fmt: skip
        screen.write(f"{root()}: {_address(listening)} (Ctrl-C ends it)")
        late = _exit_later()
        try:
            server = uvicorn.Server(settings)
            server.handle_exit = _then(server.handle_exit, late)  # type: ignore[method-assign]
            server.run(sockets=[listening])
        except KeyboardInterrupt:
            return  # Ctrl-C is the normal end


def _exit_later() -> Timer:
    """Return a timer that ends this process.

    Python waits for all threads; one that reads a file system that hangs never ends. The timer
    itself does not keep the process.
    """
    made = Timer(2 * _OPEN_S, os._exit, [0])
    made.daemon = True
    return made


def _then(end: Callable[[int, FrameType | None], None], late: Timer) -> Callable[..., None]:
    """Return a handler of signals that also starts the timer."""

    def ended(signal: int, frame: FrameType | None) -> None:
        end(signal, frame)
        with suppress(RuntimeError):  # it runs already
            late.start()

    return ended


def _listening(host: str, port: int) -> socket.socket:
    """Return a socket that listens at this address and port.

    Raises:
        BadArguments: the address is invalid, or not one of this machine.
        Crashed: the port is in use, or the system refuses it.
    """
    try:
        address = ip_address("127.0.0.1" if host == "localhost" else host)
    except ValueError as error:
        raise BadArguments(
            f"{host!r} is not an address to listen on: write for example 127.0.0.1, or 0.0.0.0 for "
            "all addresses of this machine"
        ) from error
    family = socket.AF_INET6 if isinstance(address, IPv6Address) else socket.AF_INET
    try:
        return socket.create_server((str(address), port), family=family)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise Crashed(
                f"port {port} of {address} is in use: end its user, or name another with --port"
            ) from error
        if error.errno == errno.EADDRNOTAVAIL:
            raise BadArguments(
                f"{address} is not an address of this machine: write one of its own, or 0.0.0.0"
            ) from error
        why = f"{error.strerror or error}"
        raise Crashed(f"cannot listen on port {port} of {address}: {why}") from error


def _address(listening: socket.socket) -> str:
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
