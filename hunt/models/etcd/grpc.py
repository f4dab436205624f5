"""Answers gRPC calls on one connection to a simulated etcd: keys, leases and watches.

A call becomes the request that the JSON gateway would make of it, so both are answered by the same
code. Not modelled: calls of other services (locks, elections, maintenance, authentication).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol, cast

import msgspec

from fencepost.hunt.models import grpc_frames as frames
from fencepost.hunt.models.etcd import protobuf
from fencepost.hunt.models.etcd.watches import Watch, Watches
from fencepost.hunt.sim.network import LATER, Line, Request, Wire
from fencepost.hunt.sim.unknown import Unknown

Command = tuple[Any, ...]

_UNARY = {
    "/etcdserverpb.KV/Range": ("kv/range", "Range"),
    "/etcdserverpb.KV/Put": ("kv/put", "Put"),
    "/etcdserverpb.KV/DeleteRange": ("kv/deleterange", "DeleteRange"),
    "/etcdserverpb.KV/Txn": ("kv/txn", "Txn"),
    "/etcdserverpb.Lease/LeaseGrant": ("lease/grant", "LeaseGrant"),
    "/etcdserverpb.Lease/LeaseRevoke": ("lease/revoke", "LeaseRevoke"),
    "/etcdserverpb.Lease/LeaseTimeToLive": ("lease/timetolive", "LeaseTimeToLive"),
}
_STREAMS = {
    "/etcdserverpb.Lease/LeaseKeepAlive": ("lease/keepalive", "LeaseKeepAlive"),
    "/etcdserverpb.Watch/Watch": ("watch", "Watch"),
}
_METHODS = _UNARY | _STREAMS
_OWED, _CANCEL, _END = "http2", "cancel", "end"
_QUIET = (_OWED, _CANCEL, _END)
_INTERNAL = 13


class Serving(Protocol):
    """The server that answers: as by its gateway, and by watches."""

    @property
    def watches(self) -> Watches: ...

    def handle(self, command: Command) -> Any: ...
    def wait(self, request: Request) -> None: ...


@dataclass
class _Later:
    """A call that the server answers later; it takes the place of a request (network.Request)."""

    asked: Command
    sent: int
    link: Wire
    give: Callable[[Any], None]


@dataclass
class Calls:
    """The calls of one connection. `_asked`: the streams of calls with one request that has come.
    `_open`: the streams whose answer has begun, with their watches by number."""

    server: Serving
    _frames: frames.Connection = field(default_factory=frames.Connection)
    _asked: set[int] = field(default_factory=set)
    _open: dict[int, dict[int, Watch]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.server.watches.keep()

    def commands(self, data: bytes) -> list[Command]:
        """Return the commands that these bytes complete: a path of the gateway, its request as
        JSON, the stream, and the kind of the message. Raises Unknown."""
        try:
            return [self._command(event) for event in self._frames.feed(data)]
        except frames.Wrong as error:
            raise Unknown(f"the model of etcd cannot read its gRPC: {error}") from error

    def _command(self, event: frames.Event) -> Command:
        if isinstance(event, frames.Owed):
            return _OWED, event.data
        if isinstance(event, frames.Cancelled):
            return _CANCEL, b"", event.stream
        if event.path not in _METHODS:
            raise Unknown(f"the model of etcd has no call {event.path}")
        if event.data is None:
            return _END, b"", event.stream, event.path
        if event.path in _UNARY:
            self._asked.add(event.stream)
        path, kind = _METHODS[event.path]
        body = protobuf.decode(f"{kind}Request", event.data)
        return path, msgspec.json.encode(body), event.stream, event.path, event.last

    @staticmethod
    def is_about_data(command: Command) -> bool:
        return command[0] not in _QUIET

    def execute(self, line: Line, command: Command) -> Any:
        """Carry out a command, and answer it on the line now or later."""
        match command[0]:
            case "http2":
                line.say(command[1])
                return True
            case "cancel":
                self._close(command[2])
                return True
            case "end":
                self._ended(line, command[2], command[3])
                return True
            case "watch":
                return self._watch(line, command)
        stream = command[2]
        reply = self.server.handle(command[:2])
        if reply is LATER:
            link = cast(Wire, cast(Any, line).link)
            later = _Later(
                command[:2], link.network.world.now, link,
                lambda given: self._answer(line, stream, command, given),
            )  # fmt: skip
            self.server.wait(cast(Request, later))
            return True
        self._answer(line, stream, command, reply)
        return reply

    def _answer(self, line: Line, stream: int, command: Command, reply: tuple[int, bytes]) -> None:
        """Send the answer of the gateway as one of gRPC."""
        if not line.open:
            return
        status, data = reply
        body = msgspec.json.decode(data)
        many = command[3] in _STREAMS
        begins = self._begins(stream) if many else frames.begins(stream)
        if status != 200:
            self._close(stream)
            line.say(begins + frames.ends(stream, body.get("code", _INTERNAL), body["message"]))
            return
        kind = _METHODS[command[3]][1]
        message = protobuf.encode(f"{kind}Response", body.get("result", body))
        ends = frames.ends(stream) if not many or command[4] else b""
        line.say(begins + frames.message(stream, message) + ends)

    def _begins(self, stream: int) -> bytes:
        if stream in self._open:
            return b""
        self._open[stream] = {}
        return frames.begins(stream)

    def _ended(self, line: Line, stream: int, path: str) -> None:
        """End the answer to a client that sends no more."""
        if path not in _STREAMS:
            if stream not in self._asked:
                raise Unknown(f"the model of etcd got a call {path} without a request")
            return  # its answer does not wait for this
        begins = self._begins(stream)
        self._close(stream)
        line.say(begins + frames.ends(stream))

    def _close(self, stream: int) -> None:
        for watch in self._open.pop(stream, {}).values():
            self.server.watches.end(watch)

    def left(self) -> None:
        """Note that the client has closed the connection."""
        for stream in list(self._open):
            self._close(stream)

    # Watches.

    def _watch(self, line: Line, command: Command) -> Any:
        body, stream = msgspec.json.decode(command[1]), command[2]
        begins = self._begins(stream)
        ((what, asked),) = body.items()
        mine = self._open[stream]
        header = self.server.watches.header()
        if what == "create_request":
            number = max(mine, default=-1) + 1

            def say(answer: dict[str, Any]) -> None:
                if line.open:
                    line.say(_watched(stream, number, answer))

            watch = self.server.watches.begin(asked, say)
            mine[number] = watch
            line.say(begins + _watched(stream, number, {"header": header, "created": True}))
            self.server.watches.push(watch)
        elif what == "cancel_request":
            number = int(asked.get("watch_id", 0))
            watch_or_none = mine.pop(number, None)
            if watch_or_none is not None:
                self.server.watches.end(watch_or_none)
                answer = {"header": header, "canceled": True}
                line.say(begins + _watched(stream, number, answer))
        else:
            raise Unknown(f"the model of etcd has no {what} of a watch")
        return True


def _watched(stream: int, number: int, answer: dict[str, Any]) -> bytes:
    body = {**answer, "watch_id": number} if number else answer
    return frames.message(stream, protobuf.encode("WatchResponse", body))
