"""Encodes replies in Redis' wire protocol, RESP2 and RESP3."""

from __future__ import annotations

from typing import Any

from fencepost.hunt.models.redis.lists import POPS
from fencepost.hunt.models.redis.replies import (
    ByName,
    Double,
    Members,
    NoList,
    Push,
    Scored,
    Several,
    Status,
    Transaction,
    Verbatim,
)
from fencepost.hunt.sim.network import Refusal

_KINDS = {Push: b">", Members: b"~"}
_GIVE_LISTS = POPS | {"EXEC", "XREAD", "XREADGROUP", "XRANGE", "XREVRANGE"}
_BREAKS = str.maketrans("\r\n", "  ")


def encoded(reply: Any, version: int) -> bytes:
    """Encode a reply for a connection of this version of RESP, 2 or 3."""
    if type(reply) is str:
        data = reply.encode("utf-8", "surrogateescape")
        return b"$%d\r\n%s\r\n" % (len(data), data)
    if reply is None:
        return b"_\r\n" if version == 3 else b"$-1\r\n"
    if isinstance(reply, int):
        return b":%d\r\n" % reply
    if isinstance(reply, Refusal):
        return b"-%s\r\n" % _bytes(str(reply).translate(_BREAKS))
    if isinstance(reply, str):
        return _text(reply, version)
    if isinstance(reply, dict):
        many = b"%%%d\r\n" % len(reply) if version == 3 else b"*%d\r\n" % (2 * len(reply))
        pairs = (part for pair in reply.items() for part in pair)
        return many + b"".join(encoded(one, version) for one in pairs)
    return _array(reply, version)


def _text(reply: str, version: int) -> bytes:
    data = _bytes(reply)
    if isinstance(reply, Status):
        return b"+%s\r\n" % data
    if isinstance(reply, Double) and version == 3:
        return b",%s\r\n" % data
    if isinstance(reply, Verbatim) and version == 3:
        return b"=%d\r\ntxt:%s\r\n" % (len(data) + 4, data)
    return b"$%d\r\n%s\r\n" % (len(data), data)


def _array(reply: list[Any], version: int) -> bytes:
    if isinstance(reply, NoList):
        return b"_\r\n" if version == 3 else b"*-1\r\n"
    if isinstance(reply, Transaction):
        parts: list[bytes] = reply
    elif isinstance(reply, ByName) and version == 3:
        fields = b"".join(encoded(part, version) for pair in reply for part in pair)
        return b"%%%d\r\n" % len(reply) + fields
    elif isinstance(reply, Scored) and version == 3:
        pairs = zip(reply[::2], reply[1::2], strict=True)
        parts = [encoded(list(pair), version) for pair in pairs]
    else:
        parts = [encoded(one, version) for one in reply]
    if isinstance(reply, Several):
        return b"".join(parts)
    kind = _KINDS.get(type(reply), b"*") if version == 3 else b"*"
    return b"%s%d\r\n" % (kind, len(parts)) + b"".join(parts)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def bytes_of(command: tuple[str, ...], reply: Any, version: int) -> bytes:
    """Return the bytes of the reply to a command."""
    if reply is None and version != 3 and _gives_lists(command):
        return b"*-1\r\n"
    return encoded(reply, version)


def _gives_lists(command: tuple[str, ...]) -> bool:
    """Return whether the command returns a list when it finds something."""
    name = command[0].upper()
    return name in _GIVE_LISTS or (name in ("LPOP", "RPOP") and len(command) > 2)
