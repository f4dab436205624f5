"""Converts messages of etcd's gRPC services between protobuf and the JSON of its gateway.

The tables have the fields of rpc.proto and kv.proto (etcd's API, v3) that requests and answers of
the model use, by their numbers. A field that a table lacks raises Unknown.
"""

from __future__ import annotations

import base64
from typing import Any, NamedTuple

from fencepost.hunt.sim.unknown import Unknown

Body = dict[str, Any]


class _Field(NamedTuple):
    """`kind`: bytes, text, int (64 bits), bool, or the name of an enum or of a message."""

    name: str
    kind: str
    many: bool = False


_ENUMS = {
    "Order": ("NONE", "ASCEND", "DESCEND"),
    "Target": ("KEY", "VERSION", "CREATE", "MOD", "VALUE"),
    "Result": ("EQUAL", "GREATER", "LESS", "NOT_EQUAL"),
    "Compared": ("VERSION", "CREATE", "MOD", "VALUE", "LEASE"),
    "EventType": ("PUT", "DELETE"),
    "Filter": ("NOPUT", "NODELETE"),
}


def _table(**fields: str) -> dict[int, _Field]:
    """Return the fields of a message by their numbers, from `name="number kind"`; a star behind
    the kind: repeated."""
    found = {}
    for name, text in fields.items():
        number, kind = text.split()
        found[int(number)] = _Field(name, kind.rstrip("*"), kind.endswith("*"))
    return found


_MESSAGES = {
    "Header": _table(
        cluster_id="1 int", member_id="2 int", revision="3 int", raft_term="4 int"
    ),
    "KeyValue": _table(
        key="1 bytes", create_revision="2 int", mod_revision="3 int", version="4 int",
        value="5 bytes", lease="6 int",
    ),
    "Event": _table(type="1 EventType", kv="2 KeyValue", prev_kv="3 KeyValue"),
    "RangeRequest": _table(
        key="1 bytes", range_end="2 bytes", limit="3 int", revision="4 int", sort_order="5 Order",
        sort_target="6 Target", serializable="7 bool", keys_only="8 bool", count_only="9 bool",
        min_mod_revision="10 int", max_mod_revision="11 int", min_create_revision="12 int",
        max_create_revision="13 int",
    ),
    "RangeResponse": _table(header="1 Header", kvs="2 KeyValue*", more="3 bool", count="4 int"),
    "PutRequest": _table(
        key="1 bytes", value="2 bytes", lease="3 int", prev_kv="4 bool", ignore_value="5 bool",
        ignore_lease="6 bool",
    ),
    "PutResponse": _table(header="1 Header", prev_kv="2 KeyValue"),
    "DeleteRangeRequest": _table(key="1 bytes", range_end="2 bytes", prev_kv="3 bool"),
    "DeleteRangeResponse": _table(header="1 Header", deleted="2 int", prev_kvs="3 KeyValue*"),
    "RequestOp": _table(
        request_range="1 RangeRequest", request_put="2 PutRequest",
        request_delete_range="3 DeleteRangeRequest", request_txn="4 TxnRequest",
    ),
    "ResponseOp": _table(
        response_range="1 RangeResponse", response_put="2 PutResponse",
        response_delete_range="3 DeleteRangeResponse", response_txn="4 TxnResponse",
    ),
    "Compare": _table(
        result="1 Result", target="2 Compared", key="3 bytes", version="4 int",
        create_revision="5 int", mod_revision="6 int", value="7 bytes", lease="8 int",
        range_end="64 bytes",
    ),
    "TxnRequest": _table(compare="1 Compare*", success="2 RequestOp*", failure="3 RequestOp*"),
    "TxnResponse": _table(header="1 Header", succeeded="2 bool", responses="3 ResponseOp*"),
    "LeaseGrantRequest": _table(TTL="1 int", ID="2 int"),
    "LeaseGrantResponse": _table(header="1 Header", ID="2 int", TTL="3 int", error="4 text"),
    "LeaseRevokeRequest": _table(ID="1 int"),
    "LeaseRevokeResponse": _table(header="1 Header"),
    "LeaseKeepAliveRequest": _table(ID="1 int"),
    "LeaseKeepAliveResponse": _table(header="1 Header", ID="2 int", TTL="3 int"),
    "LeaseTimeToLiveRequest": _table(ID="1 int", keys="2 bool"),
    "LeaseTimeToLiveResponse": _table(
        header="1 Header", ID="2 int", TTL="3 int", grantedTTL="4 int", keys="5 bytes*"
    ),
    "WatchCreateRequest": _table(
        key="1 bytes", range_end="2 bytes", start_revision="3 int", progress_notify="4 bool",
        filters="5 Filter*", prev_kv="6 bool", watch_id="7 int", fragment="8 bool",
    ),
    "WatchCancelRequest": _table(watch_id="1 int"),
    "WatchProgressRequest": _table(),
    "WatchRequest": _table(
        create_request="1 WatchCreateRequest", cancel_request="2 WatchCancelRequest",
        progress_request="3 WatchProgressRequest",
    ),
    "WatchResponse": _table(
        header="1 Header", watch_id="2 int", created="3 bool", canceled="4 bool",
        compact_revision="5 int", cancel_reason="6 text", fragment="7 bool", events="11 Event*",
    ),
}  # fmt: skip


def decode(kind: str, data: bytes) -> Body:
    """Return a message as the gateway's JSON has it, but for its zeros. Raises Unknown."""
    found: Body = {}
    fields, at = _MESSAGES[kind], 0
    while at < len(data):
        tag, at = _number(data, at)
        wire = tag & 7
        if wire == 0:
            raw, at = _number(data, at)
            value: int | bytes = raw
        elif wire == 2:
            size, at = _number(data, at)
            value, at = data[at : at + size], at + size
            if at > len(data):
                raise Unknown("the model of etcd got a message that is cut short")
        else:
            raise Unknown(f"the model of etcd has no field {tag >> 3} of {kind}")
        field = fields.get(tag >> 3)
        if field is None:
            raise Unknown(f"the model of etcd has no field {tag >> 3} of {kind}")
        for one in _values(field, value):
            if field.many:
                found.setdefault(field.name, []).append(one)
            else:
                found[field.name] = one
    return found


def _values(field: _Field, value: int | bytes) -> list[Any]:
    """Return the values of a field: several where numbers are packed."""
    if isinstance(value, int):
        return [_of_number(field, value)]
    if field.kind == "bytes":
        return [base64.b64encode(value).decode()]
    if field.kind == "text":
        return [value.decode(errors="replace")]
    if field.kind in _MESSAGES:
        return [decode(field.kind, value)]
    found, at = [], 0
    while at < len(value):
        number, at = _number(value, at)
        found.append(_of_number(field, number))
    return found


def _of_number(field: _Field, number: int) -> Any:
    if field.kind == "bool":
        return bool(number)
    if field.kind == "int":
        return str(number - (1 << 64) if number >> 63 else number)
    names = _ENUMS.get(field.kind, ())
    if number >= len(names):
        raise Unknown(f"the model of etcd has no {field.name} {number}")
    return names[number]


def encode(kind: str, body: Body) -> bytes:
    """Return a message of the gateway's JSON as protobuf."""
    numbers = {field.name: number for number, field in _MESSAGES[kind].items()}
    found = b""
    for name, value in sorted(body.items(), key=lambda item: numbers[item[0]]):
        number = numbers[name]
        field = _MESSAGES[kind][number]
        for one in value if field.many else (value,):
            found += _written(number, field, one)
    return found


def _written(number: int, field: _Field, value: Any) -> bytes:
    if field.kind in _MESSAGES:
        data = encode(field.kind, value)
    elif field.kind == "bytes":
        data = base64.b64decode(value)
    elif field.kind == "text":
        data = value.encode()
    else:
        names = _ENUMS.get(field.kind)
        return _varint(number << 3) + _varint(names.index(value) if names else int(value))
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _number(data: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise Unknown("the model of etcd got a message that is cut short")
        byte = data[at]
        number |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if not byte & 0x80:
            return number & (1 << 64) - 1, at


def _varint(number: int) -> bytes:
    number &= (1 << 64) - 1
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    found.append(number)
    return bytes(found)
