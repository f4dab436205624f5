"""Decodes requests. A request that the model lacks raises Unknown with its name."""

from __future__ import annotations

from typing import Any, NamedTuple

from fencepost.hunt.models.zookeeper.jute import Reader
from fencepost.hunt.sim.unknown import Unknown

CREATE, DELETE, EXISTS, GET, SET, GET_ACL, SET_ACL, CHILDREN, SYNC = range(1, 10)
PING, CHILDREN_2, CHECK, MULTI, CREATE_2 = 11, 12, 13, 14, 15
CHECK_WATCHES, REMOVE_WATCHES, CREATE_CONTAINER, CREATE_TTL = 17, 18, 19, 21
AUTH, SET_WATCHES, CLOSE = 100, 101, -11
NAMES = {
    CREATE: "create", DELETE: "delete", EXISTS: "exists", GET: "getData", SET: "setData",
    GET_ACL: "getACL", SET_ACL: "setACL", CHILDREN: "getChildren", SYNC: "sync", PING: "ping",
    CHILDREN_2: "getChildren2", CHECK: "check", MULTI: "multi", CREATE_2: "create2",
    CHECK_WATCHES: "checkWatches", REMOVE_WATCHES: "removeWatches",
    CREATE_CONTAINER: "createContainer", CREATE_TTL: "createTTL",
    AUTH: "addAuth", SET_WATCHES: "setWatches", CLOSE: "closeSession",
}  # fmt: skip
_LACKS = {
    16: "reconfig", 20: "deleteContainer", 22: "multiRead", 102: "sasl", 103: "getEphemerals",
    104: "getAllChildrenNumber", 105: "setWatches2", 106: "addWatch", 107: "whoAmI",
}  # fmt: skip
WORDS = (
    "conf", "cons", "crst", "dirs", "dump", "envi", "gtmk", "hash", "isro", "lead", "mntr", "ruok",
    "srst", "srvr", "stat", "stmk", "wchc", "wchp", "wchs",
)  # fmt: skip
"""Commands of administrators, which they send instead of requests."""
CREATES = frozenset({CREATE, CREATE_2, CREATE_CONTAINER, CREATE_TTL})
WRITES = CREATES | {DELETE, SET, SET_ACL, MULTI, CLOSE}
_PARTS = CREATES | {DELETE, SET, CHECK}
_ACL_MOST = 1000


class Acl(NamedTuple):
    """Who (`scheme`, `id`) has which permissions."""

    perms: int
    scheme: str | None
    id: str | None


class Connect(NamedTuple):
    """The first record of a connection. `session` 0: a new one."""

    name: str
    last_zxid: int
    timeout_ms: int
    session: int
    password: bytes
    read_only: bool


class Request(NamedTuple):
    """A request. `fields`: those of its record, in their order; of a multi, its requests."""

    name: str
    type: int
    xid: int
    fields: tuple[Any, ...]


def connect(record: bytes) -> Connect:
    source = Reader(record)
    source.number()  # the version of the protocol, 0
    zxid, timeout_ms, session = source.long(), source.number(), source.long()
    password = source.buffer() or b""
    return Connect(
        "connect", zxid, timeout_ms, session, password, not source.over and source.flag()
    )


def request(record: bytes) -> Request:
    """Decode a request. Raises TooShort if it is malformed."""
    source = Reader(record)
    xid, type = source.number(), source.number()
    if type == MULTI:
        return Request("multi", type, xid, _multi(source))
    return Request(_name(type), type, xid, _fields(source, type))


def _name(type: int) -> str:
    if type not in NAMES:
        known = _LACKS.get(type, f"number {type}")
        raise Unknown(f"the model of ZooKeeper has no request {known}")
    return NAMES[type]


def _multi(source: Reader) -> tuple[Request, ...]:
    found: list[Request] = []
    while True:
        type, done, _ = source.number(), source.flag(), source.number()
        if done:
            return tuple(found)
        if type not in _PARTS:
            raise Unknown(f"the model of ZooKeeper has no {_name(type)} within a multi")
        found.append(Request(_name(type), type, 0, _fields(source, type)))


def _fields(source: Reader, type: int) -> tuple[Any, ...]:
    if type in (CREATE, CREATE_2, CREATE_CONTAINER):
        return source.text(), source.buffer(), _acls(source), source.number()
    if type == CREATE_TTL:
        return source.text(), source.buffer(), _acls(source), source.number(), source.long()
    if type in (DELETE, CHECK, CHECK_WATCHES, REMOVE_WATCHES):
        return source.text(), source.number()
    if type in (EXISTS, GET, CHILDREN, CHILDREN_2):
        return source.text(), source.flag()
    if type == SET:
        return source.text(), source.buffer(), source.number()
    if type == SET_ACL:
        return source.text(), _acls(source), source.number()
    if type in (GET_ACL, SYNC):
        return (source.text(),)
    if type == AUTH:
        return source.number(), source.text(), source.buffer()
    if type == SET_WATCHES:
        return source.long(), source.texts(), source.texts(), source.texts()
    return ()


def _acls(source: Reader) -> tuple[Acl, ...]:
    count = min(source.number(), _ACL_MOST)
    return tuple(Acl(source.number(), source.text(), source.text()) for _ in range(count))
