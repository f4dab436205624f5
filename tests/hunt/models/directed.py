"""Directed commands for the model of Redis: edge cases that random commands rarely meet.

Each group begins with an empty server. A line is a command of connection 1, or of another one
(`2> GET a`), with words as in a shell. `inline` sends the rest as a line of words, and `raw` sends
bytes, with the number of replies before them. test_directed.py compares the model with the recorded
replies of Redis 7.0, and tests/cluster/test_models.py compares the record with a real server.

To record again: python -m tests.hunt.models.directed PORT > tests/hunt/models/redis-7.0.json
"""

from __future__ import annotations

import json
import re
import shlex
import socket
import sys
from dataclasses import dataclass
from pathlib import Path

_PUSHED = re.compile(rb"[*>](3\r\n\$7\r\n|4\r\n\$8\r\np)message\r\n")
"""The beginning of a message that the server sends without a request."""
RECORD = Path(__file__).parent / "redis-7.0.json"
REPLY_S = 30.0


@dataclass(frozen=True)
class Line:
    """Bytes that one connection sends, the number of replies, and whether the server closes the
    connection after them."""

    connection: int
    data: bytes
    replies: int
    closes: bool


def line(text: str) -> Line:
    """Parse a line of a group."""
    place = re.match(r"(\d)> (.*)", text, re.DOTALL)
    connection, rest = (int(place[1]), place[2]) if place else (1, text)
    closes = rest.startswith("QUIT")
    if rest.startswith("raw "):
        _, count, escaped = rest.split(" ", 2)
        data = escaped.encode().decode("unicode_escape").encode("latin-1")
        return Line(connection, data, abs(int(count)), int(count) < 0)
    if rest.startswith("inline "):
        return Line(connection, rest.removeprefix("inline ").encode() + b"\r\n", 1, closes)
    words = [word.encode("utf-8", "surrogateescape") for word in shlex.split(rest)]
    packed = b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)
    return Line(connection, b"*%d\r\n%s" % (len(words), packed), 1, closes)


def masked(reply: bytes) -> bytes:
    """Return a reply without the number of its connection."""
    return re.sub(rb"(\$2\r\nid\r\n|\A):\d+(?=\r\n\$4\r\nmode)", rb"\1:N", reply)


def end(data: bytes, at: int) -> int | None:
    """Return where the reply that begins here ends; None: it is incomplete."""
    stop = data.find(b"\r\n", at)
    if stop < 0:
        return None
    kind, number = data[at : at + 1], data[at + 1 : stop]
    if kind == b"$" and number != b"-1":
        stop += int(number) + 2
    many = {b"*": 1, b">": 1, b"~": 1, b"%": 2}.get(kind, 0)
    many *= max(0, int(number)) if many else 0
    place: int | None = stop + 2
    for _ in range(many):
        place = None if place is None else end(data, place)
    return None if place is None or place > len(data) else place


class Server:
    """A real server."""

    def __init__(self, address: tuple[str, int]) -> None:
        self._address = address
        self._connections: dict[int, socket.socket] = {}

    def ask(self, one: Line) -> bytes:
        link = self._connections.get(one.connection)
        if link is None:
            link = socket.create_connection(self._address, REPLY_S)
            self._connections[one.connection] = link
        link.sendall(one.data)
        data = b""
        while not _is_complete(data, one.replies):
            data += link.recv(65536)
        if one.closes:
            assert link.recv(1) == b""
            link.close()
            del self._connections[one.connection]
        return masked(data)

    def close(self) -> None:
        for link in self._connections.values():
            link.close()


def _is_complete(data: bytes, replies: int) -> bool:
    place: int | None = 0
    while replies and place is not None:
        replies -= not _PUSHED.match(data, place)
        place = end(data, place)
    return place is not None


def asked(address: tuple[str, int]) -> dict[str, list[tuple[str, str]]]:
    """Return the replies of a real server to all groups, as in the record."""
    found = {}
    for name, lines in GROUPS.items():
        server = Server(address)
        for command in ("FLUSHALL", "SCRIPT FLUSH"):
            server.ask(line(f"9> {command}"))
        found[name] = [(text, server.ask(line(text)).decode("latin-1")) for text in lines]
        server.close()
    return found


def _lines(text: str) -> list[str]:
    return [one.strip() for one in text.strip().splitlines()]


GROUPS = {
    name.strip(): _lines(text)
    for name, text in (
        part.split("\n", 1)
        for part in (Path(__file__).parent / "directed.txt").read_text().split("# ")[1:]
    )
}
"""The groups of directed.txt, by name."""


if __name__ == "__main__":
    print(json.dumps(asked(("127.0.0.1", int(sys.argv[1]))), indent=0))
