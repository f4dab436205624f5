"""A client's connection to a PostgreSQL server: startup, TLS that is refused, and cancelling."""

from __future__ import annotations

from typing import Any

from fencepost.hunt.models.postgres.backend import Backend
from fencepost.hunt.models.postgres.messages import PROTOCOL, Decoder, Message
from fencepost.hunt.sim.network import Line, Server
from fencepost.hunt.sim.unknown import Unknown
from fencepost.hunt.sim.world import MS, Timer

_QUIET = ("sync", "flush", "encrypt", "startup", "close", "describe", "parse", "terminate")


class Connection:
    """`backend`: its session at the server, once it has one."""

    over = unasked = False
    line: Line | None

    def __init__(self, server: Any) -> None:
        self.server = server
        self.line = None
        self.backend: Backend | None = None
        self._decoder = Decoder()

    def commands(self, data: bytes) -> list[Message]:
        return self._decoder.feed(data)

    def encoded(self, command: Message, reply: Any) -> bytes:
        return b""  # it answers on its line

    def is_about_data(self, command: Message) -> bool:
        return command[0] not in _QUIET

    def execute(self, server: Server, command: Message) -> Any:
        match command:
            case ("encrypt",):
                self.say(b"N")
            case ("cancel", pid, secret):
                self.server.cancel(pid, secret)
                self.hang_up()
            case ("startup", code, given):
                self._start(code, given)
            case _ if self.backend is not None:
                self.backend.receive(command)
            case _:
                raise Unknown("the client sends bytes that are no message of PostgreSQL's protocol")
        return True

    def _start(self, code: int, given: dict[str, str]) -> None:
        if code != PROTOCOL:
            raise Unknown(f"the model of PostgreSQL has no protocol {code >> 16}.{code & 0xFFFF}")
        given = dict(given)
        user = given.pop("user", "")
        database = given.pop("database", user)
        client = "" if self.line is None else self.line.client.name
        self.backend = self.server.connect(user, database, self.say, self.hang_up, client)
        self.backend.greet(given)
        self._probe()

    def _probe(self) -> None:
        """Probe a silent client, as TCP's keepalives do: the kernel of a paused one answers."""
        backend = self.backend
        if backend is None or backend.over:
            return
        settings, world = backend.settings, self.server.world
        idle_s = settings.ms("tcp_keepalives_idle")
        rest_s = settings.ms("tcp_keepalives_interval") * settings.ms("tcp_keepalives_count")
        boots = self.server.boots

        def cut() -> bool:
            return self.line is not None and self.line.broken

        def lost() -> None:
            if self.server.boots == boots and cut():
                backend.end()
                self.server.proceed()
            else:
                self._probe()

        def probe() -> None:
            if self.server.boots != boots or backend.over:
                return
            if cut():
                world.at(world.now + rest_s * 1000 * MS, Timer(self.server, lost))
            else:
                self._probe()

        world.at(world.now + idle_s * 1000 * MS, Timer(self.server, probe))

    def say(self, data: bytes) -> None:
        if self.line is not None and self.line.open:
            self.line.say(data)

    def hang_up(self) -> None:
        if self.line is not None:
            self.line.hang_up()

    def left(self) -> None:
        """Note that the client has closed the connection."""
        if self.backend is not None:
            self.backend.gone()
