"""Where a node's server listens: in a container everywhere, on a host on the test's address alone.

The containers' network is internal, and reached by nobody else. A host has other networks too. So
the harness writes there by which address the other nodes reach it, and the servers listen on that
one, and on loopback, where they are asked for their health.
"""

from __future__ import annotations

import socket
from pathlib import Path

from fencepost.node.places import ADDRESS

LOOPBACK = "127.0.0.1"


def everywhere() -> tuple[str, ...]:
    """The addresses to listen on, the one that others use first.

    Raises:
        OSError: the address that the harness wrote is none of this node's.
    """
    address = _written()
    if not address:
        return ("0.0.0.0",)
    try:
        with socket.socket() as trial:
            trial.bind((address, 0))
    except OSError as error:
        raise OSError(
            f"{address} is no address of this host ({error.strerror}), so that its server cannot "
            "listen there: write the one that it has itself as `address` in the hosts file"
        ) from error
    return (address, LOOPBACK)


def own() -> str:
    """The address of this node's server, also where it listens on one alone."""
    return _written() or LOOPBACK


def _written() -> str:
    file = Path(ADDRESS)
    return file.read_text().strip() if file.exists() else ""
