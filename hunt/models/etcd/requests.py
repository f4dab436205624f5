"""Decodes requests of etcd's JSON gateway that read or change keys.

Keys and values are in base64, integers of 64 bits are strings, zero and false are omitted. A
feature that is not modelled raises Unknown with its name.
"""

from __future__ import annotations

import base64
from functools import lru_cache
from typing import Any, NamedTuple

from fencepost.hunt.sim.unknown import Unknown

Body = dict[str, Any]
_KNOWN_RANGE = {
    "key", "range_end", "limit", "sort_order", "sort_target", "max_create_revision",
}  # fmt: skip
# Fields of a comparison: their names in a request and in Key.
_FIELDS = {
    "CREATE": ("create_revision", "created"),
    "MOD": ("mod_revision", "modified"),
    "VERSION": ("version", "version"),
    "VALUE": ("value", "value"),
}


# The same few keys occur again and again.
@lru_cache(4096)
def bytes_of(text: str) -> bytes:
    return base64.b64decode(text)


class Keys(NamedTuple):
    """A key, or with an `end` the keys from `first` up to it, exclusive."""

    first: bytes
    end: bytes

    @staticmethod
    def of(body: Body) -> Keys:
        return Keys(bytes_of(body["key"]), bytes_of(body.get("range_end", "")))


class Range(NamedTuple):
    """A request to read keys."""

    keys: Keys
    most: int
    by_creation: bool
    descends: bool
    limit: int

    @staticmethod
    def of(body: Body) -> Range:
        if strange := body.keys() - _KNOWN_RANGE:
            raise Unknown(f"the model of etcd has no range with {min(strange)}")
        return Range(
            Keys.of(body),
            int(body.get("max_create_revision", 0)),
            body.get("sort_target") == "CREATE",
            body.get("sort_order") == "DESCEND",
            int(body.get("limit", 0)),
        )


class Put(NamedTuple):
    key: bytes
    value: bytes
    lease: int

    @staticmethod
    def of(body: Body) -> Put:
        lease = int(body.get("lease", 0))
        return Put(bytes_of(body["key"]), bytes_of(body.get("value", "")), lease)


class Delete(NamedTuple):
    keys: Keys

    @staticmethod
    def of(body: Body) -> Delete:
        return Delete(Keys.of(body))


Op = Range | Put | Delete


class Compare(NamedTuple):
    """A comparison: all of these keys have this value in the field; 0 also matches missing keys,
    which have no value."""

    keys: Keys
    field: str
    wanted: int | bytes

    @staticmethod
    def of(body: Body) -> Compare:
        target = body.get("target", "VERSION")
        if target not in _FIELDS or body.get("result", "EQUAL") != "EQUAL":
            raise Unknown(f"the model of etcd has no comparison {target} {body.get('result')}")
        asked, name = _FIELDS[target]
        if name == "value":
            return Compare(Keys.of(body), name, bytes_of(body.get(asked, "")))
        return Compare(Keys.of(body), name, int(body.get(asked, 0)))


class Txn(NamedTuple):
    """A transaction. `clashes`: it writes a key twice, or writes and deletes it."""

    compares: list[Compare]
    success: list[Op]
    failure: list[Op]
    clashes: bool

    @staticmethod
    def of(body: Body) -> Txn:
        success = [_op(one) for one in body.get("success", ())]
        failure = [_op(one) for one in body.get("failure", ())]
        compares = [Compare.of(one) for one in body.get("compare", ())]
        return Txn(compares, success, failure, _clash(success) or _clash(failure))


def parse(path: str, body: Body) -> Body | Range | Txn:
    """Decode a request for `State.execute`, so that a repeated one is decoded once."""
    match path:
        case "kv/range":
            return Range.of(body)
        case "kv/txn":
            return Txn.of(body)
    return body


_KINDS: dict[str, type[Op]] = {
    "request_range": Range,
    "request_put": Put,
    "request_delete_range": Delete,
}


def _op(one: Body) -> Op:
    """Decode one op of a transaction."""
    ((name, body),) = one.items()
    if name not in _KINDS:
        raise Unknown(f"the model of etcd has no {name}")
    return _KINDS[name].of(body)


def _clash(ops: list[Op]) -> bool:
    puts = [op.key for op in ops if isinstance(op, Put)]
    deleted = [op.keys for op in ops if isinstance(op, Delete)]
    return len(puts) > len(set(puts)) or any(
        key == first or first <= key < end for key in puts for first, end in deleted
    )
