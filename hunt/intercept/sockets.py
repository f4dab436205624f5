"""Simulates TCP sockets for clients that bring their own connections.

A socket behaves as a kernel's: bytes arrive in order, a late reply can still be read, a server that
stops closes the connection, and bytes sent into a cut get no answer. Not simulated: name lookups,
addresses other than the servers'. TLS passes in clear (tls.py).
"""

from __future__ import annotations

import errno
import io
import socket
from typing import Any

from fencepost.hunt.intercept.context import Place, here
from fencepost.hunt.intercept.duplex import Down, Duplex
from fencepost.hunt.intercept.keepalive import Keepalive
from fencepost.hunt.intercept.readiness import number, poke
from fencepost.hunt.intercept.socket_file import SocketFile
from fencepost.hunt.intercept.stream import Talk
from fencepost.hunt.intercept.tls import Clear
from fencepost.hunt.sim.network import Network, Request, Server, Session
from fencepost.hunt.sim.unknown import Unknown
from fencepost.hunt.sim.world import NEVER, Node, Task, Timer, Wake

# Linux' timeouts for connecting and sending (tcp_syn_retries 6, tcp_retries2 15).
_CONNECTS_NS, _SENDS_NS = 127_000_000_000, 924_000_000_000
# The operators of socket's own constant, an enumeration, take longer than the rest of a recv.
_PEEK = int(socket.MSG_PEEK)


class Socket(Clear):
    """A replacement for socket.socket."""

    def __init__(self, family: int = -1, type: int = -1, proto: int = -1) -> None:
        self.family = socket.AF_INET
        self.type = socket.SOCK_STREAM
        self.proto = 0
        self._timeout = socket.getdefaulttimeout()
        self._place: Place | None = None
        self._inbox = b""
        self._under_way: list[Talk | Down] = []
        self._duplex: Duplex | None = None
        self._waiting: Task | None = None
        self._alarm: Wake | None = None
        self._ended = False
        self._keepalive = Keepalive()
        self._number: int | None = None
        # Of a connect that does not block: EINPROGRESS, its error, or 0.
        self._error = 0
        self.watchers: list[Wake] = []
        self.closed = False
        self.waits = False
        self.unread: list[Talk] = []
        self.command: tuple[Any, ...] = ()
        self.network: Network
        self.client: Node
        self.server: Server
        self.session: Session
        self.ends = (-1, -1)
        self.latency = 0

    # Options.

    def settimeout(self, seconds: float | None) -> None:
        self._timeout = seconds

    def gettimeout(self) -> float | None:
        return self._timeout

    def setblocking(self, blocks: bool) -> None:
        self._timeout = None if blocks else 0.0

    def getblocking(self) -> bool:
        return self._timeout != 0

    def setsockopt(self, *given: Any) -> None:
        self._keepalive.set(*given[:3])

    def getsockopt(self, level: int, option: int, *_: Any) -> int:
        return self._error if (level, option) == (socket.SOL_SOCKET, socket.SO_ERROR) else 0

    def fileno(self) -> int:
        place = self._place or here()
        if self.closed or place is None:
            return -1
        if self._number is None:
            self._number = number(self, place)
        return self._number

    def readable(self) -> bool:
        if self._under_way and self._place is not None:
            self._take_what_came(self._place.world.now)
        return bool(self._inbox) or self._ended or self._error not in (0, errno.EINPROGRESS)

    def writable(self) -> bool:
        return self._place is not None and self._error != errno.EINPROGRESS

    def getpeername(self) -> tuple[str, int]:
        self._must_be_open()
        return self.server.name, self.server.port

    def getsockname(self) -> tuple[str, int]:
        self._must_be_open()
        return self.client.name, 40000

    # Connecting.

    def connect(self, address: tuple[str, int]) -> None:
        place = here()
        assert place is not None, "a simulated socket is used outside of its run"
        host, port = address[0], address[1]
        server = place.servers.get(host)
        if server is None or port != server.port:
            raise place.unknown(f"it connects to {host}:{port}, which is not one of its servers")
        open_ = self._open_later if self._timeout == 0 else self._open
        counted = place.sockets.get(place.task.node) if place.sockets else None
        if counted is None:
            open_(place, server)
        else:
            counted.connect(self, host, lambda: open_(place, server))

    def _begin(self, place: Place, server: Server) -> None:
        place.step()
        self._place, self.network, self.server = place, place.network, server
        self.session = server.session()
        self.client = place.task.node
        self.ends = (self.client.index, server.index)
        self.latency = self.network.latency(*self.ends)
        if server.duplex:
            self._listen()

    def _listen(self) -> None:
        """Let the server send at any time from now on."""
        self._duplex = self.session.line = Duplex(self)

    def _open_later(self, place: Place, server: Server) -> None:
        """Connect without blocking: the outcome comes after a round trip."""
        self._begin(place, server)
        world, cuts = place.world, (self.network.requests_cut, self.network.replies_cut)
        self._error = errno.EINPROGRESS

        def end() -> None:
            cut = any(self.ends in links for links in cuts)
            self.network.speaks(self)
            self._error = errno.ETIMEDOUT if cut else 0 if server.up else errno.ECONNREFUSED
            if self._error == 0 and not self.closed:
                self.network.open[server.index][self] = None
            poke(self, place)

        after_ns = 2 * self.latency
        if any(self.ends in links for links in cuts):
            after_ns = _CONNECTS_NS
            self.network.speaks_no_more(self)
        world.at(world.now + after_ns, Timer(self.client, end))
        raise BlockingIOError(errno.EINPROGRESS, "Operation now in progress")

    def _open(self, place: Place, server: Server) -> None:
        self._begin(place, server)
        if self.ends in self.network.requests_cut or self.ends in self.network.replies_cut:
            self.network.speaks_no_more(self)
            place.world.sleep(_CONNECTS_NS if self._timeout is None else round(self._timeout * 1e9))
            self.network.speaks(self)
            raise TimeoutError("timed out")
        if not server.up:
            raise ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused")
        self.network.open[server.index][self] = None

    def connect_ex(self, address: tuple[str, int]) -> int:
        try:
            self.connect(address)
        except OSError as error:
            return error.errno or errno.ETIMEDOUT
        return 0

    # Sending.

    def sendall(self, data: Any, flags: int = 0) -> None:
        place = self._must_be_open()
        counted = place.sockets.get(place.task.node) if place.sockets else None
        if counted is None:
            self._send(place, data)
        else:
            counted.send(self, self.server.name, bytes(data), lambda: self._send(place, data))

    def _send(self, place: Place, data: Any) -> None:
        place.step()
        if self._ended:
            raise ConnectionResetError(errno.ECONNRESET, "Connection reset by peer")
        try:
            commands = tuple(self.session.commands(bytes(data)))
        except Unknown as error:
            raise place.unknown(str(error)) from None
        if not commands:
            return
        self.command = commands
        world = place.world
        if world.unsent is not None:
            world.unsent.queue()
        if self.session.unasked and self._duplex is None:
            if self._under_way:
                raise place.unknown(
                    "it subscribes on a connection before it has the answers to earlier requests"
                )
            self._listen()
        if self._duplex is not None:
            self._duplex.send(commands)
            return
        talk = Talk(self, commands, world.now, self.server.boots)
        self._under_way.append(talk)
        if self.ends in self.network.requests_cut:
            talk.fell_silent()
            if self.network.tap is not None:
                talk.miss(self.network.tap)
        else:
            world.at(world.now + self.latency, talk)

    def send(self, data: Any, flags: int = 0) -> int:
        self.sendall(data, flags)
        return len(data)

    # Receiving.

    def recv(self, size: int, flags: int = 0) -> bytes:
        place = self._must_be_open()
        counted = place.sockets.get(place.task.node) if place.sockets else None
        if counted is None:
            return self._receive(place, size, flags)
        name = self.server.name
        found: bytes = counted.receive(self, name, lambda: self._receive(place, size, flags))
        return found

    def _receive(self, place: Place, size: int, flags: int) -> bytes:
        place.step()
        if not self._inbox and not self._ended:
            self._wait(place)
        found = self._inbox[:size]
        if not flags & _PEEK:
            self._inbox = self._inbox[size:]
        return found

    def recv_into(self, buffer: Any, size: int = 0, flags: int = 0) -> int:
        view = memoryview(buffer).cast("B")
        found = self.recv(size or len(view), flags)
        view[: len(found)] = found
        return len(found)

    def _wait(self, place: Place) -> None:
        """Wait until bytes arrive or the connection ends."""
        world = place.world
        if self._timeout == 0:
            self._take_what_came(world.now)
            if not self._inbox and not self._ended:
                raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")
        until = world.now + (_SENDS_NS if self._timeout is None else round(self._timeout * 1e9))
        while not self._inbox and not self._ended:
            if world.now >= until:
                if self._timeout is None:
                    raise TimeoutError(errno.ETIMEDOUT, "Connection timed out")
                raise TimeoutError("timed out")
            self._sleep(place, until)
            # A client that slept past its timeout still finds the bytes that have arrived.
            self._take_what_came(world.now)

    def _sleep(self, place: Place, until: int) -> None:
        """Wait for bytes, at most until this time; raise TimeoutError if the kernel's probes find
        the connection broken."""
        world, duplex, task = place.world, self._duplex, place.task
        probed = NEVER
        if duplex is not None and self._keepalive.on:
            probed = world.now + self._keepalive.after_ns
        alarm = self._alarm = Wake(task)
        world.at(min(probed, until), alarm)
        self._waiting = task
        try:
            world.wait()
        finally:
            alarm.off = self._alarm.off = True
            self._waiting = None
        if probed < until and world.now >= probed and duplex is not None and duplex.broken:
            raise TimeoutError(errno.ETIMEDOUT, "Connection timed out")

    def _take_what_came(self, now: int) -> None:
        for talk in list(self._under_way):
            if talk.back and not talk.off and talk.arrives <= now:
                talk.off = True
                self._take(talk)

    def _take(self, talk: Talk | Down) -> None:
        if talk in self._under_way:
            self._under_way.remove(talk)
            if isinstance(talk, Down):
                assert self._duplex is not None
                data, ends = self._duplex.take(talk)
                self._inbox += data
                self._ended = self._ended or ends
                return
            self._inbox += talk.reply
            if self.session.over and not any(one.back for one in self._under_way):
                self._ended = True

    def arrived(self, request: Request) -> None:
        if self.closed or self._ended:
            return
        assert isinstance(request, Talk | Down)
        self._take(request)
        if self._waiting is not None and (self._duplex is None or self._inbox or self._ended):
            self._waiting.resume()
        if self.watchers and self._place is not None:
            poke(self, self._place)

    def sent_back(self, down: Down) -> None:
        """Note that the server has sent bytes on a duplex connection."""
        self._under_way.append(down)

    def parted(self, whole: Talk, parts: list[Talk]) -> None:
        """Replace commands that were sent together by the parts that are answered separately."""
        if whole in self._under_way:
            place = self._under_way.index(whole)
            self._under_way[place : place + 1] = parts

    def moved(self, request: Request, late: Request) -> None:
        if self._duplex is not None:
            self._duplex.moved(request, late)
        self._under_way = [late if one is request else one for one in self._under_way]  # type: ignore[misc]

    def reset(self) -> None:
        """Note that the server has closed the connection; wake the waiting task, except across a
        cut."""
        if self.closed or self.ends in self.network.replies_cut:
            return
        self._ended = True
        if self.watchers and self._place is not None:
            poke(self, self._place, self.latency)
        if self._waiting is not None and self._alarm is not None:
            self._alarm.off = True
            self._alarm = Wake(self._waiting)
            self.network.world.at(self.network.world.now + self.latency, self._alarm)

    # Closing.

    def shutdown(self, how: int) -> None:
        self._must_be_open()

    def close(self) -> None:
        """Close the socket; bytes sent before may still arrive.

        It takes no step, because the garbage collector may close sockets at any time.
        """
        if not self.closed and self._place is not None:
            self.network.open.get(self.server.index, {}).pop(self, None)
            self.network.speaks(self)
            if self.waits:
                self.server.left(self)
            if self._duplex is not None:
                self._duplex.closed()
        self.closed = True

    def detach(self) -> int:
        self.close()
        return -1

    def makefile(self, mode: str = "r", buffering: int | None = None, **text: Any) -> Any:
        raw = SocketFile(self)
        if "b" not in mode:
            return io.TextIOWrapper(io.BufferedRWPair(raw, raw), **text)
        if "w" in mode:
            return io.BufferedRWPair(raw, raw) if "r" in mode else io.BufferedWriter(raw)
        return io.BufferedReader(raw)

    def __enter__(self) -> Socket:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _must_be_open(self) -> Place:
        if self.closed:
            raise OSError(errno.EBADF, "Bad file descriptor")
        if self._place is None:
            raise OSError(errno.ENOTCONN, "Transport endpoint is not connected")
        return self._place


def address_info(host: Any, port: Any, *_: Any, **__: Any) -> list[Any]:
    """Replace getaddrinfo: a server's name is its own address."""
    place = here()
    assert place is not None
    host = host.decode() if isinstance(host, bytes) else host
    if host not in place.servers:
        raise place.unknown(f"it looks up {host}, which is not one of its servers")
    return [(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (host, int(port or 0)))]


def host_address(host: str) -> str:
    """Replace gethostbyname."""
    return str(address_info(host, 0)[0][4][0])
