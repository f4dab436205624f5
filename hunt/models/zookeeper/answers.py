"""Encodes answers and notices of watches."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct

from fencepost.hunt.models.zookeeper.jute import BOOL, INT, buffer, framed, text, texts
from fencepost.hunt.models.zookeeper.requests import Acl

_HEADER, _STAT, _SESSION = Struct(">iqi"), Struct(">qqqqiiiqiiq"), Struct(">iiq")
_PART, _EVENT = Struct(">i?i"), Struct(">ii")
NOTICE, PING, AUTH = -1, -2, -4
_CONNECTED = 3

Stat = Sequence[int]


def session(timeout_ms: int, number: int, password: bytes) -> bytes:
    """Answer the request for a session; timeout 0: there is none."""
    made = _SESSION.pack(0, timeout_ms, number) + buffer(password) + BOOL.pack(False)
    return framed(made)


def answer(xid: int, zxid: int, error: int = 0, body: bytes = b"") -> bytes:
    return framed(_HEADER.pack(xid, zxid, error) + body)


def notice(kind: int, path: str) -> bytes:
    return framed(_HEADER.pack(NOTICE, -1, 0) + _EVENT.pack(kind, _CONNECTED) + text(path))


def stat(found: Stat) -> bytes:
    return _STAT.pack(*found)


def acl(acls: Sequence[Acl], found: Stat) -> bytes:
    entries = (INT.pack(one.perms) + text(one.scheme) + text(one.id) for one in acls)
    return INT.pack(len(acls)) + b"".join(entries) + stat(found)


def children(names: list[str], found: Stat | None = None) -> bytes:
    return texts(names) + (b"" if found is None else stat(found))


def part(type: int, body: bytes) -> bytes:
    """Encode the answer to one request of a multi."""
    return _PART.pack(type, False, 0) + body


def failed_part(error: int) -> bytes:
    return _PART.pack(-1, False, error) + INT.pack(error)


END = _PART.pack(-1, True, -1)
