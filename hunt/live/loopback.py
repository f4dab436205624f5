"""The loopback addresses of a hunt, at which no client of another hunt can connect.

Clients connect again in the background, also after the schedule in which they began. So two hunts
on one machine never share an address as long as a client of either may live: each takes a range of
loopback for itself. The guard (guard.py) holds it as well, until it has killed the clients of a
hunt that was killed.
"""

from __future__ import annotations

import os
import socket
import sys
from contextlib import suppress

from fencepost.hunt.sim.unknown import Unknown

_RANGES = range(1, 255)
"""Those of 127.0.0.0/8, by their second number. Services of the machine itself are in 127.0."""
_PARTS = 254
"""How many values the third number takes: one for each client of each lane."""
_NAME = "\0fencepost-hunt-127.{}"
"""The abstract socket (unix(7)) of a range: its holder has the range. Like loopback, such names are
those of a network namespace."""


class Loopback:
    """Addresses for this number of clients. `held`: the sockets that keep them, by file descriptor.

    Raises:
        Unknown: other hunts use all of them.
    """

    def __init__(self, clients: int) -> None:
        self._ranges: list[int] = []
        self._sockets: list[socket.socket] = []
        if not sys.platform.startswith("linux"):
            return  # elsewhere, loopback has one address, and the system chooses each port
        first = os.getpid() % len(_RANGES)
        for number in [*_RANGES[first:], *_RANGES[:first]]:
            if len(self._ranges) * _PARTS >= clients:
                break
            held = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self._sockets.append(held)
            with suppress(OSError):  # another hunt's
                held.bind(_NAME.format(number))
                self._ranges.append(number)
                continue
            self._sockets.pop().close()
        if len(self._ranges) * _PARTS < clients:
            self.close()
            raise Unknown(
                f"a hunt of programs needs addresses on loopback for {clients} clients, and other "
                "hunts on this machine use them"
            )

    @property
    def held(self) -> list[int]:
        return [one.fileno() for one in self._sockets]

    def address(self, client: int, server: int) -> str:
        """Return the address at which this client, counted over all lanes, finds a server."""
        if not self._ranges:
            return "127.0.0.1"
        number, part = divmod(client, _PARTS)
        return f"127.{self._ranges[number]}.{1 + part}.{1 + server}"

    def close(self) -> None:
        """Leave the addresses to other hunts: no client of this one lives."""
        self._ranges = []
        while self._sockets:
            self._sockets.pop().close()
