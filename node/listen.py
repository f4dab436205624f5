"""Chooses the addresses a node's server listens on: all in a container, one on a host.

The containers' network is internal, so no other machine reaches it. A host has other networks too.
So the harness writes the address by which other nodes reach it, and the server listens there and on
loopback, where its health is checked.
"""

from __future__ import annotations

import socket
from pathlib import Path

from fencepost.node.places import ADDRESS

LOOPBACK = "127.0.0.1"


def everywhere() -> tuple[str, ...]:
    """Return the addresses to listen on, the one that others use first.

    Raises:
        OSError: the address that the harness wrote is not one of this node's.
    """
    address = _written()
    if not address:
        return ("0.0.0.0",)
    try:
        with socket.socket() as trial:
            trial.bind((address, 0))
    except OSError as error:
        raise OSError(
            f"{address} is not an address of this host ({error.strerror}), so its server cannot "
            "listen there: set `address` in the hosts file to an address that the host itself has"
        ) from error
    return (address, LOOPBACK)


def own() -> str:
    """Return the address of this node's server, even if it listens on only one."""
    return _written() or LOOPBACK


def _written() -> str:
    file = Path(ADDRESS)
    return file.read_text().strip() if file.exists() else ""
