"""TCP's keepalive: after how long a socket without an answer ends a connection that is broken."""

from __future__ import annotations

import socket

# Linux' values, in s and in probes, by option.
_USUAL = {"TCP_KEEPIDLE": 7200, "TCP_KEEPINTVL": 75, "TCP_KEEPCNT": 9}
# Of this system; macOS has no TCP_KEEPIDLE.
_NAMES = {
    (socket.IPPROTO_TCP, getattr(socket, name)): name for name in _USUAL if hasattr(socket, name)
}


class Keepalive:
    """The options of one socket. `on`: SO_KEEPALIVE."""

    def __init__(self) -> None:
        self.on = False
        self._values = dict(_USUAL)

    def set(self, level: int, option: int, value: object) -> None:
        if (level, option) == (socket.SOL_SOCKET, socket.SO_KEEPALIVE):
            self.on = bool(value)
        elif name := _NAMES.get((level, option)):
            self._values[name] = int(str(value))

    @property
    def after_ns(self) -> int:
        """How long the connection may be silent before it ends, if no probe is answered."""
        idle, between, count = self._values.values()
        return (idle + between * count) * 1_000_000_000
