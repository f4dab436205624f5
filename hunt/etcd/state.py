"""What an etcd cluster agrees on: keys with their revisions, and leases (etcd's API, v3).

Requests and answers are those of the JSON gateway: keys and values in base64, integers of 64 bits
as strings, zero and false left out. What is not modelled is refused by its name.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from fencepost.hunt.unknown import Unknown

Body = dict[str, Any]
_INVALID, _NOT_FOUND, _PRECONDITION = 3, 5, 9
_KNOWN_RANGE = {
    "key", "range_end", "limit", "sort_order", "sort_target", "max_create_revision",
}  # fmt: skip


class Refused(Exception):
    """etcd refuses a request, with a code of gRPC's."""

    def __init__(self, code: int, words: str) -> None:
        super().__init__(words)
        self.code = code


@dataclass
class Key:
    value: bytes
    created: int
    modified: int
    version: int
    lease: int


@dataclass
class Lease:
    """`until`: when it runs out by the leader's monotonic clock (ns)."""

    ttl_s: int
    until: int
    keys: set[bytes] = field(default_factory=set)


# The same few keys come again and again.
@lru_cache(4096)
def _bytes(text: str) -> bytes:
    return base64.b64decode(text)


@lru_cache(4096)
def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


class State:
    """`deleted`: the keys that went with the last change, for those who watch."""

    def __init__(self) -> None:
        self.revision = 1
        self.keys: dict[bytes, Key] = {}
        self.leases: dict[int, Lease] = {}
        self.deleted: list[bytes] = []
        self._ids = 7_587_000_000_000_000_000

    def carry_out(self, path: str, body: Body, now: int) -> Body:
        """Carry out one request. Raises Refused."""
        match path:
            case "kv/range":
                return {"header": self._header(), **self._range(body)}
            case "kv/txn":
                return self._txn(body)
            case "kv/put":
                self._change([("put", body)])
                return {"header": self._header()}
            case "kv/deleterange":
                (answer,) = self._change([("delete_range", body)])
                return answer
            case "lease/grant":
                return self._grant(body, now)
            case "lease/keepalive":
                return {"result": self._keep_alive(body, now)}
            case "lease/revoke":
                self.revoke(self._lease(body))
                return {"header": self._header()}
            case "lease/timetolive":
                return self._time_to_live(body, now)
            case "lock/unlock":
                self.leave(_bytes(body["key"]))
                return {"header": self._header()}
        raise Unknown(f"the model of etcd has no {path}")

    def _header(self) -> Body:
        return {"revision": str(self.revision)}

    # Leases.

    def _lease(self, body: Body) -> int:
        number = int(body["ID"])
        if number not in self.leases:
            raise Refused(_NOT_FOUND, "etcdserver: requested lease not found")
        return number

    def _grant(self, body: Body, now: int) -> Body:
        ttl_s, number = int(body["TTL"]), int(body.get("ID", 0))
        if number in self.leases:
            raise Refused(_PRECONDITION, "etcdserver: lease already exists")
        if not number:
            self._ids += 1
            number = self._ids
        self.leases[number] = Lease(ttl_s, now + ttl_s * 1_000_000_000)
        return {"header": self._header(), "ID": str(number), "TTL": str(ttl_s)}

    def _keep_alive(self, body: Body, now: int) -> Body:
        lease = self.leases.get(int(body["ID"]))
        if lease is None:
            return {"header": self._header(), "ID": body["ID"]}
        lease.until = now + lease.ttl_s * 1_000_000_000
        return {"header": self._header(), "ID": body["ID"], "TTL": str(lease.ttl_s)}

    def _time_to_live(self, body: Body, now: int) -> Body:
        lease = self.leases.get(int(body["ID"]))
        if lease is None:
            return {"header": self._header(), "ID": body["ID"], "TTL": "-1"}
        left = max(0, lease.until - now) // 1_000_000_000
        told = {"TTL": str(left)} if left else {}
        return {"header": self._header(), "ID": body["ID"], **told}

    def revoke(self, number: int) -> None:
        """End a lease, and all keys with it."""
        lease = self.leases.pop(number)
        if lease.keys:
            self.revision += 1
            for key in sorted(lease.keys):
                self._remove(key)

    def promoted(self, now: int) -> None:
        """A new leader gives every lease its whole time again (lessor.Promote)."""
        for lease in self.leases.values():
            lease.until = now + lease.ttl_s * 1_000_000_000

    # Keys.

    def _range(self, body: Body) -> Body:
        if strange := body.keys() - _KNOWN_RANGE:
            raise Unknown(f"the model of etcd has no range with {min(strange)}")
        found = self._between(body)
        count = len(found)
        most = int(body.get("max_create_revision", 0))
        if most:
            found = [key for key in found if self.keys[key].created <= most]
        if body.get("sort_target") == "CREATE":
            found.sort(key=lambda key: self.keys[key].created)
        if body.get("sort_order") == "DESCEND":
            found.reverse()
        limit = int(body.get("limit", 0))
        rows = [self._row(key) for key in (found[:limit] if limit else found)]
        answer: Body = {"kvs": rows} if rows else {}
        if len(rows) < len(found):
            answer["more"] = True
        return answer | ({"count": str(count)} if count else {})

    def _between(self, body: Body) -> list[bytes]:
        """The keys of a range, in order."""
        first, end = _bytes(body["key"]), _bytes(body.get("range_end", ""))
        if not end:
            return [first] if first in self.keys else []
        return sorted(key for key in self.keys if first <= key < end)

    def _row(self, name: bytes) -> Body:
        key = self.keys[name]
        row: Body = {
            "key": _text(name),
            "create_revision": str(key.created),
            "mod_revision": str(key.modified),
            "version": str(key.version),
        }
        if key.value:
            row["value"] = _text(key.value)
        if key.lease:
            row["lease"] = str(key.lease)
        return row

    def _txn(self, body: Body) -> Body:
        for branch in ("success", "failure"):
            self._must_be_apart([_op(one) for one in body.get(branch, ())])
        succeeded = all(self._holds(one) for one in body.get("compare", ()))
        wanted = body.get("success" if succeeded else "failure", ())
        ops = [_op(one) for one in wanted]
        answers = self._change(ops)
        told: Body = {"header": self._header()}
        if succeeded:
            told["succeeded"] = True
        named = [
            {f"response_{kind}": answer} for (kind, _), answer in zip(ops, answers, strict=True)
        ]
        return told | ({"responses": named} if named else {})

    def _must_be_apart(self, ops: list[tuple[str, Body]]) -> None:
        """Refuse a transaction that writes a key twice, or writes and deletes it."""
        puts = [_bytes(body["key"]) for kind, body in ops if kind == "put"]
        deleted = [
            (_bytes(body["key"]), _bytes(body.get("range_end", "")))
            for kind, body in ops
            if kind == "delete_range"
        ]
        twice = len(puts) > len(set(puts))
        if twice or any(
            key == first or first <= key < end for key in puts for first, end in deleted
        ):
            raise Refused(_INVALID, "etcdserver: duplicate key given in txn request")

    def _holds(self, compare: Body) -> bool:
        """Whether a comparison is so; with a range, for each of its keys."""
        target = compare.get("target", "VERSION")
        if target not in ("CREATE", "MOD", "VERSION") or compare.get("result") != "EQUAL":
            raise Unknown(f"the model of etcd has no comparison {target} {compare.get('result')}")
        name = {"CREATE": "created", "MOD": "modified", "VERSION": "version"}[target]
        field_name = {"CREATE": "create_revision", "MOD": "mod_revision", "VERSION": "version"}
        wanted = int(compare.get(field_name[target], 0))
        keys = self._between(compare)
        if not keys:
            return wanted == 0
        return all(getattr(self.keys[key], name) == wanted for key in keys)

    def _change(self, ops: list[tuple[str, Body]]) -> list[Body]:
        """Carry out the ops of one request, all at one revision. Each answer has a header of its
        own, with the revision as it was once that op was carried out."""
        for kind, body in ops:
            lease = int(body.get("lease", 0)) if kind == "put" else 0
            if lease and lease not in self.leases:
                raise Refused(_NOT_FOUND, "etcdserver: requested lease not found")
        before = self.revision
        answers: list[Body] = []
        for kind, body in ops:
            if kind == "range":
                answers.append({"header": self._header(), **self._range(body)})
            elif kind == "put":
                self._put(body, before + 1)
                self.revision = before + 1
                answers.append({"header": self._header()})
            else:
                gone = self._between(body)
                if gone:
                    self.revision = before + 1
                for key in gone:
                    self._remove(key)
                told = {"deleted": str(len(gone))} if gone else {}
                answers.append({"header": self._header(), **told})
        return answers

    # The lock service (queue.py).

    def enter(self, body: Body) -> tuple[bytes, bytes, int]:
        """The name of a lock, the key with which its lease waits there, and when that was made."""
        lease = int(body["lease"])
        if lease not in self.leases:
            raise Refused(_NOT_FOUND, "etcdserver: requested lease not found")
        name = _bytes(body["name"]) + b"/"
        key = name + f"{lease:x}".encode()
        if key not in self.keys:
            self._change([("put", {"key": _text(key), "lease": str(lease)})])
        return name, key, self.keys[key].created

    def older(self, name: bytes, created: int) -> bool:
        """Whether somebody came to a lock before."""
        return any(key.startswith(name) and one.created < created for key, one in self.keys.items())

    def told_of(self, key: bytes) -> Body:
        return {"header": self._header(), "key": _text(key)}

    def leave(self, key: bytes) -> None:
        self._change([("delete_range", {"key": _text(key)})])

    def _put(self, body: Body, revision: int) -> None:
        name, lease = _bytes(body["key"]), int(body.get("lease", 0))
        value = _bytes(body.get("value", ""))
        old = self.keys.get(name)
        if old is None:
            self.keys[name] = Key(value, revision, revision, 1, lease)
        else:
            if old.lease in self.leases:
                self.leases[old.lease].keys.discard(name)
            old.value, old.modified, old.lease = value, revision, lease
            old.version += 1
        if lease:
            self.leases[lease].keys.add(name)

    def _remove(self, name: bytes) -> None:
        key = self.keys.pop(name)
        if key.lease in self.leases:
            self.leases[key.lease].keys.discard(name)
        self.deleted.append(name)


def _op(one: Body) -> tuple[str, Body]:
    """One op of a transaction: its kind and its body."""
    ((name, body),) = one.items()
    kind = name.removeprefix("request_")
    if kind not in ("put", "range", "delete_range"):
        raise Unknown(f"the model of etcd has no {name}")
    return kind, body
