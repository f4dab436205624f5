"""`fencepost serve`: the results folder in a browser."""

from __future__ import annotations

import errno
import socket
from importlib.util import find_spec
from ipaddress import IPv6Address, ip_address
from typing import Annotated

import typer

from fencepost.harness.command import screen
from fencepost.harness.command.options import Results
from fencepost.harness.errors import BadArguments, Crashed
from fencepost.harness.results.results import root

_OPEN_S = 2
"""How long answers that are being sent may take once the command is to end."""


def serve(
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="The port to listen on; 0: any that is free.")
    ] = 8080,
    host: Annotated[
        str,
        typer.Option(
            metavar="ADDRESS",
            help="The address to listen on. Who reaches another than this machine's own sees and "
            "deletes all runs: there is no password.",
        ),
    ] = "127.0.0.1",
    results: Results = None,
) -> None:
    if lacking := [name for name in ("starlette", "uvicorn") if find_spec(name) is None]:
        raise BadArguments(f"serve needs {' and '.join(lacking)}: pip install 'fencepost[serve]'")
    if not root().is_dir():
        raise BadArguments(
            f"there is no results folder {root()}: a run makes it, or name another with --results"
        )
    with _listening(host, port) as listening:
        import uvicorn

        from fencepost.harness.web.site import site

        settings = uvicorn.Config(
            site(), log_level="warning", access_log=False, timeout_graceful_shutdown=_OPEN_S
        )
        screen.write(f"{root()}: {_address(listening)} (Ctrl-C ends it)")
        try:
            uvicorn.Server(settings).run(sockets=[listening])
        except KeyboardInterrupt:
            return  # that is how it ends


def _listening(host: str, port: int) -> socket.socket:
    """A socket that listens there.

    Raises:
        BadArguments: that is no address, or none of this machine's.
        Crashed: the port is taken, or not to be had.
    """
    try:
        address = ip_address("127.0.0.1" if host == "localhost" else host)
    except ValueError as error:
        raise BadArguments(
            f"{host!r} is no address to listen on: say 127.0.0.1, or 0.0.0.0 for all of this "
            "machine's"
        ) from error
    family = socket.AF_INET6 if isinstance(address, IPv6Address) else socket.AF_INET
    try:
        return socket.create_server((str(address), port), family=family)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise Crashed(
                f"port {port} of {address} is in use: end what has it, or name another with --port"
            ) from error
        if error.errno == errno.EADDRNOTAVAIL:
            raise BadArguments(f"{address} is no address of this machine") from error
        why = f"{error.strerror or error}"
        raise Crashed(f"port {port} of {address} cannot be had: {why}") from error


def _address(listening: socket.socket) -> str:
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
