"""Reads and writes the header fields of HTTP/2 (HPACK, RFC 7541).

A reader keeps the table of one direction of a connection. Written fields use no table and no
Huffman code: each reader understands them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache

Field = tuple[str, str]

_TABLE = 4096
"""The size of the table that a client may use (SETTINGS_HEADER_TABLE_SIZE), in bytes."""
_OVERHEAD = 32
"""The size of an entry beyond its name and value (section 4.1), in bytes."""

# Appendix A.
_STATIC: tuple[Field, ...] = (
    (":authority", ""), (":method", "GET"), (":method", "POST"), (":path", "/"),
    (":path", "/index.html"), (":scheme", "http"), (":scheme", "https"), (":status", "200"),
    (":status", "204"), (":status", "206"), (":status", "304"), (":status", "400"),
    (":status", "404"), (":status", "500"), ("accept-charset", ""),
    ("accept-encoding", "gzip, deflate"),
    *((name, "") for name in (
        "accept-language", "accept-ranges", "accept", "access-control-allow-origin", "age", "allow",
        "authorization", "cache-control", "content-disposition", "content-encoding",
        "content-language", "content-length", "content-location", "content-range", "content-type",
        "cookie", "date", "etag", "expect", "expires", "from", "host", "if-match",
        "if-modified-since", "if-none-match", "if-range", "if-unmodified-since", "last-modified",
        "link", "location", "max-forwards", "proxy-authenticate", "proxy-authorization", "range",
        "referer", "refresh", "retry-after", "server", "set-cookie", "strict-transport-security",
        "transfer-encoding", "user-agent", "vary", "via", "www-authenticate",
    )),
)  # fmt: skip

# Appendix B: the symbols by the length of their codes. Codes of one length rise with the symbols,
# and follow those of the length before.
_CODES: dict[int, str] = {
    5: "30-32 61 63 65 69 6f 73 74",
    6: "20 25 2d-2f 33-39 3d 41 5f 62 64 66-68 6c-6e 70 72 75",
    7: "3a 42-57 59 6a-6b 71 76-7a",
    8: "26 2a 2c 3b 58 5a",
    10: "21-22 28-29 3f",
    11: "27 2b 7c",
    12: "23 3e",
    13: "00 24 40 5b 5d 7e",
    14: "5e 7d",
    15: "3c 60 7b",
    19: "5c c3 d0",
    20: "80 82-83 a2 b8 c2 e0 e2",
    21: "99 a1 a7 ac b0-b1 b3 d1 d8-d9 e3 e5-e6",
    22: "81 84-86 88 92 9a 9c a0 a3-a4 a9-aa ad b2 b5 b9-bb bd-be c4 c6 e4 e8-e9",
    23: "01 87 89-8d 8f 93 95-98 9b 9d-9e a5-a6 a8 ae-af b4 b6-b7 bc bf c5 e7 ef",
    24: "09 8e 90-91 94 9f ab ce d7 e1 ec-ed",
    25: "c7 cf ea-eb",
    26: "c0-c1 c8-ca cd d2 d5 da-db ee f0 f2-f3 ff",
    27: "cb-cc d3-d4 d6 dd-df f1 f4-f8 fa-fe",
    28: "02-08 0b-0c 0e-15 17-1a 1b-1f 7f dc f9",
    30: "0a 0d 16",
}
_LONGEST = 30


class Wrong(Exception):
    """These bytes are no header fields."""


def _symbols(text: str) -> Iterator[int]:
    for part in text.split():
        first, _, last = part.partition("-")
        yield from range(int(first, 16), int(last or first, 16) + 1)


@lru_cache(1)
def _by_code() -> dict[tuple[int, int], int]:
    """Return the symbols by the length of their code and the code."""
    found, code, before = {}, 0, 0
    for length, text in _CODES.items():
        code <<= length - before
        before = length
        for symbol in _symbols(text):
            found[length, code] = symbol
            code += 1
    return found


def huffman(data: bytes) -> bytes:
    """Decode a text in Huffman's code; ones fill the last byte."""
    codes, found, code, length = _by_code(), bytearray(), 0, 0
    for byte in data:
        for place in range(7, -1, -1):
            code, length = code << 1 | byte >> place & 1, length + 1
            symbol = codes.get((length, code))
            if symbol is not None:
                found.append(symbol)
                code = length = 0
            elif length > _LONGEST:
                raise Wrong("it has an unknown code")
    if length > 7 or code != (1 << length) - 1:
        raise Wrong("it ends within a code")
    return bytes(found)


class Reader:
    """The table of header fields that a client has sent."""

    def __init__(self) -> None:
        self._fields: list[Field] = []  # the newest first
        self._most = _TABLE

    def read(self, block: bytes) -> list[Field]:
        """Decode a block of header fields. Raises Wrong."""
        found, at = [], 0
        while at < len(block):
            first = block[at]
            if first & 0x80:
                number, at = _number(block, at, 7)
                found.append(self._at(number))
            elif first & 0xE0 == 0x20:
                self._most, at = _number(block, at, 5)
                self._evict()
            else:
                kept = first & 0x40
                number, at = _number(block, at, 6 if kept else 4)
                if number:
                    name = self._at(number)[0]
                else:
                    name, at = _text(block, at)
                value, at = _text(block, at)
                found.append((name, value))
                if kept:
                    self._fields.insert(0, (name, value))
                    self._evict()
        return found

    def _at(self, number: int) -> Field:
        if 1 <= number <= len(_STATIC):
            return _STATIC[number - 1]
        place = number - len(_STATIC) - 1
        if not 0 <= place < len(self._fields):
            raise Wrong(f"its table has no field {number}")
        return self._fields[place]

    def _evict(self) -> None:
        size = sum(len(name) + len(value) + _OVERHEAD for name, value in self._fields)
        while size > self._most and self._fields:
            name, value = self._fields.pop()
            size -= len(name) + len(value) + _OVERHEAD


def _number(block: bytes, at: int, bits: int) -> tuple[int, int]:
    """Read an integer from these bits of a byte on (section 5.1); return it, and its end."""
    most = (1 << bits) - 1
    number = block[at] & most
    at += 1
    if number < most:
        return number, at
    shift = 0
    while True:
        if at >= len(block) or shift > 28:
            raise Wrong("an integer is too long")
        byte = block[at]
        number += (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if not byte & 0x80:
            return number, at


def _text(block: bytes, at: int) -> tuple[str, int]:
    if at >= len(block):
        raise Wrong("a text is missing")
    coded = block[at] & 0x80
    length, at = _number(block, at, 7)
    data = block[at : at + length]
    if len(data) < length:
        raise Wrong("a text is cut short")
    return (huffman(data) if coded else data).decode("latin-1"), at + length


def write(fields: Iterable[Field]) -> bytes:
    """Encode header fields, each as a literal that enters no table."""
    found = b""
    for name, value in fields:
        found += b"\0" + _written(name) + _written(value)
    return found


def _written(text: str) -> bytes:
    data, most = text.encode("latin-1"), (1 << 7) - 1
    if len(data) < most:
        return bytes([len(data)]) + data
    rest, head = len(data) - most, bytearray([most])
    while rest > 0x7F:
        head.append(rest & 0x7F | 0x80)
        rest >>= 7
    head.append(rest)
    return bytes(head) + data
