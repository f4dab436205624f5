"""Decodes the frames of HTTP/2 (RFC 9113) on a connection with gRPC calls, and encodes answers.

Included: the frames of gRPC's clients in plain text. Their messages are not compressed. The windows
of the receiver stay open: each frame of data is credited at once, and answers are small.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple
from urllib.parse import quote

from fencepost.hunt.models import hpack

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_DATA, _HEADERS, _RESET, _SETTINGS, _PING, _GOAWAY, _WINDOW, _MORE = 0, 1, 3, 4, 6, 7, 8, 9
_END_STREAM = _ACK = 1
_END_HEADERS, _PADDED, _PRIORITY = 4, 8, 0x20
_HEAD = 9
_LARGEST = 16_384
"""The most bytes in a frame (SETTINGS_MAX_FRAME_SIZE, its default)."""
_SPECIAL = " !\"#$&'()*+,-./:;<=>?@[\\]^_`{|}~"


class Wrong(Exception):
    """The client does not speak gRPC."""


class Message(NamedTuple):
    """A message of a call; `last`: the client sends no more. `data` None: it sends no more, and
    that came alone."""

    stream: int
    path: str
    data: bytes | None
    last: bool


class Cancelled(NamedTuple):
    """The client has given up a call."""

    stream: int


class Owed(NamedTuple):
    """Bytes that the connection itself owes: acknowledgements."""

    data: bytes


Event = Message | Cancelled | Owed


@dataclass
class _Call:
    path: str
    data: bytes = b""
    last: bool = False


@dataclass
class Connection:
    """The client's frames of one connection."""

    _rest: bytes = b""
    _begun: bool = False
    _fields: hpack.Reader = field(default_factory=hpack.Reader)
    _calls: dict[int, _Call] = field(default_factory=dict)
    # A block of header fields that continues in the next frame.
    _block: tuple[int, int, bytes] | None = None

    def feed(self, data: bytes) -> Iterator[Event]:
        """Yield what these bytes complete. Raises Wrong."""
        self._rest += data
        if not self._begun:
            if len(self._rest) < len(PREFACE):
                return
            if not self._rest.startswith(PREFACE):
                raise Wrong("its connection does not begin as one of HTTP/2")
            self._begun, self._rest = True, self._rest[len(PREFACE) :]
            yield Owed(_frame(_SETTINGS))
        while len(self._rest) >= _HEAD:
            length = int.from_bytes(self._rest[:3], "big")
            if length > _LARGEST:
                raise Wrong(f"it sends a frame of {length:,} bytes")
            if len(self._rest) < _HEAD + length:
                return
            kind, flags, stream = struct.unpack("!BBI", self._rest[3:_HEAD])
            content = self._rest[_HEAD : _HEAD + length]
            self._rest = self._rest[_HEAD + length :]
            yield from self._take(kind, flags, stream & 0x7FFFFFFF, content)

    def _take(self, kind: int, flags: int, stream: int, content: bytes) -> Iterator[Event]:
        if kind == _SETTINGS and not flags & _ACK:
            yield Owed(_frame(_SETTINGS, _ACK))
        elif kind == _PING and not flags & _ACK:
            yield Owed(_frame(_PING, _ACK, 0, content))
        elif kind == _RESET:
            if self._calls.pop(stream, None) is not None:
                yield Cancelled(stream)
        elif kind == _HEADERS:
            content = _unpadded(flags, content)
            self._block = stream, flags, content[5:] if flags & _PRIORITY else content
            yield from self._headers(flags)
        elif kind == _MORE and self._block is not None:
            begun, first, block = self._block
            self._block = begun, first, block + content
            yield from self._headers(flags)
        elif kind == _DATA:
            yield from self._data(flags, stream, content)

    def _headers(self, flags: int) -> Iterator[Event]:
        if not flags & _END_HEADERS or self._block is None:
            return
        (stream, first, block), self._block = self._block, None
        try:
            fields = dict(self._fields.read(block))
        except hpack.Wrong as error:
            raise Wrong(str(error)) from error
        if fields.get("grpc-encoding", "identity") != "identity":
            raise Wrong("it compresses its messages")
        call = self._calls[stream] = _Call(fields.get(":path", ""))
        if first & _END_STREAM:
            yield from self._ends(stream, call)

    def _data(self, flags: int, stream: int, content: bytes) -> Iterator[Event]:
        if content:
            credit = struct.pack("!I", len(content))
            yield Owed(_frame(_WINDOW, 0, 0, credit) + _frame(_WINDOW, 0, stream, credit))
        call = self._calls.get(stream)
        if call is None:
            return  # it was given up
        call.data += _unpadded(flags, content)
        ends = bool(flags & _END_STREAM)
        while len(call.data) >= 5:
            compressed, length = struct.unpack("!BI", call.data[:5])
            if compressed:
                raise Wrong("it compresses its messages")
            if len(call.data) < 5 + length:
                break
            message, call.data = call.data[5 : 5 + length], call.data[5 + length :]
            call.last = ends and not call.data
            yield Message(stream, call.path, message, call.last)
        if ends and not call.last:
            yield from self._ends(stream, call)
        if ends:
            self._calls.pop(stream, None)

    def _ends(self, stream: int, call: _Call) -> Iterator[Event]:
        self._calls.pop(stream, None)
        yield Message(stream, call.path, None, True)


def _unpadded(flags: int, content: bytes) -> bytes:
    return content[1 : len(content) - content[0]] if flags & _PADDED and content else content


def begins(stream: int) -> bytes:
    """Return the head of the answer to a call."""
    fields = ((":status", "200"), ("content-type", "application/grpc"))
    return _frame(_HEADERS, _END_HEADERS, stream, hpack.write(fields))


def message(stream: int, data: bytes) -> bytes:
    """Return one message of an answer."""
    whole = struct.pack("!BI", 0, len(data)) + data
    parts = (whole[at : at + _LARGEST] for at in range(0, len(whole), _LARGEST))
    return b"".join(_frame(_DATA, 0, stream, part) for part in parts)


def ends(stream: int, code: int = 0, words: str = "") -> bytes:
    """Return the end of an answer, with gRPC's status."""
    fields = [("grpc-status", str(code))]
    if words:
        fields.append(("grpc-message", quote(words, safe=_SPECIAL)))
    return _frame(_HEADERS, _END_HEADERS | _END_STREAM, stream, hpack.write(fields))


def _frame(kind: int, flags: int = 0, stream: int = 0, content: bytes = b"") -> bytes:
    return len(content).to_bytes(3, "big") + struct.pack("!BBI", kind, flags, stream) + content
