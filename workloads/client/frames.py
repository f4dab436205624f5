"""Splits the bytes of a connection to Redis into commands and replies (RESP2 and RESP3)."""

from __future__ import annotations

_OF_CONNECTIONS = "AUTH CLIENT DISCARD EXEC HELLO INFO MULTI QUIT RESET SELECT UNWATCH WATCH"
QUIET = frozenset(_OF_CONNECTIONS.split(" "))
"""Commands of a connection itself, which tell nothing about a lock."""
_OF_LENGTH, _OF_PARTS, _OF_PAIRS = b"$=!", b"*~>", b"%|"


def end_of(data: bytes, at: int = 0) -> int | None:
    """Return where the command or the reply that begins here ends; None if it is incomplete."""
    stop = data.find(b"\n", at)
    if stop < 0:
        return None
    kind, count, at = data[at : at + 1], data[at + 1 : stop], stop + 1
    if kind in _OF_LENGTH:
        end = at + int(count) + 2 if int(count) >= 0 else at
        return end if end <= len(data) else None
    parts = 0
    if kind in _OF_PARTS or kind in _OF_PAIRS:
        parts = int(count) * (2 if kind in _OF_PAIRS else 1)
    for _ in range(parts):
        found = end_of(data, at)
        if found is None:
            return None
        at = found
    return at


def cut(data: bytes) -> tuple[list[bytes], bytes]:
    """Split bytes into whole commands or replies, and the rest."""
    found, at = [], 0
    while at < len(data) and (end := end_of(data, at)) is not None:
        found.append(data[at:end])
        at = end
    return found, data[at:]


def name_of(command: bytes) -> str:
    """Return the name of a command; "" for an empty line."""
    words = command.split(b"\r\n", 3)[2:3] if command[:1] == b"*" else command.split()[:1]
    return words[0].decode(errors="replace").upper() if words else ""
