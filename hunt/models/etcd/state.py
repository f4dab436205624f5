"""The replicated state of an etcd cluster: keys with their revisions, and leases (etcd's API, v3).

Requests and answers are those of the JSON gateway: keys and values in base64, integers of 64 bits
as strings, zero and false omitted. A feature that is not modelled raises Unknown with its name.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from functools import lru_cache

from fencepost.hunt.models.etcd.requests import (
    Body,
    Compare,
    Delete,
    Keys,
    Op,
    Put,
    Range,
    Txn,
    bytes_of,
    parse,
)
from fencepost.hunt.sim.unknown import Unknown

_FIRST_CHANGE = 2
"""The revision of the first change of a new cluster."""
_INVALID, _NOT_FOUND, _PRECONDITION = 3, 5, 9
_ANSWERED = {
    Range: "response_range",
    Put: "response_put",
    Delete: "response_delete_range",
}


class Refused(Exception):
    """etcd refuses a request, with a gRPC code."""

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
    """A lease. `until`: when it expires by the leader's monotonic clock (ns)."""

    ttl_s: int
    until: int
    keys: set[bytes] = field(default_factory=set)


# The same few keys occur again and again.
@lru_cache(4096)
def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()


class State:
    """The state of the cluster. `deleted`: keys that the last change deleted, for watchers of the
    gateway. `events`: each change of a key, with its revision; None: no client can ask for them."""

    def __init__(self) -> None:
        self.revision = 1
        self.keys: dict[bytes, Key] = {}
        self.leases: dict[int, Lease] = {}
        self.deleted: list[bytes] = []
        self.events: list[tuple[int, bytes, Body]] | None = None
        self._events_from = 0
        self._ids = 7_587_000_000_000_000_000

    def execute(self, path: str, request: Body | Range | Txn, now: int) -> Body:
        """Execute one request, `parse` or not. Raises Refused."""
        if isinstance(request, Txn):
            return self._txn(request)
        if isinstance(request, Range):
            return {"header": self._header(), **self._range(request)}
        body = request
        match path:
            case "kv/range" | "kv/txn":
                return self.execute(path, parse(path, body), now)
            case "kv/put":
                self._change([Put.of(body)])
                return {"header": self._header()}
            case "kv/deleterange":
                (answer,) = self._change([Delete.of(body)])
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
                self.leave(bytes_of(body["key"]))
                return {"header": self._header()}
        raise Unknown(f"the model of etcd has no {path}")

    def _header(self) -> Body:
        return {"revision": str(self.revision)}

    def header(self) -> Body:
        """Return the header of an answer."""
        return self._header()

    # Events.

    def keep_events(self) -> None:
        """Keep all events from now on: a client may watch."""
        if self.events is None:
            self.events, self._events_from = [], self.revision + 1

    def since(self, revision: int) -> list[tuple[int, bytes, Body]]:
        """Return the events from a revision on: revision, key and event."""
        if self.events is None or (
            revision < self._events_from and self._events_from > _FIRST_CHANGE
        ):
            raise Unknown(f"the model of etcd kept no events of the revision {revision}")
        return [event for event in self.events if event[0] >= revision]

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
            return {"header": self._header(), "ID": str(body["ID"])}
        lease.until = now + lease.ttl_s * 1_000_000_000
        return {"header": self._header(), "ID": str(body["ID"]), "TTL": str(lease.ttl_s)}

    def _time_to_live(self, body: Body, now: int) -> Body:
        lease = self.leases.get(int(body["ID"]))
        if lease is None:
            return {"header": self._header(), "ID": str(body["ID"]), "TTL": "-1"}
        left = max(0, lease.until - now) // 1_000_000_000
        answer = {"TTL": str(left)} if left else {}
        granted = str(lease.ttl_s)
        return {"header": self._header(), "ID": str(body["ID"]), **answer, "grantedTTL": granted}

    def revoke(self, number: int) -> None:
        """End a lease, and delete all its keys."""
        lease = self.leases.pop(number)
        if lease.keys:
            self.revision += 1
            for key in sorted(lease.keys):
                self._remove(key)

    def promoted(self, now: int) -> None:
        """Renew every lease for its whole TTL, as a new leader does (lessor.Promote)."""
        for lease in self.leases.values():
            lease.until = now + lease.ttl_s * 1_000_000_000

    # Keys.

    def _range(self, asked: Range) -> Body:
        found = self._between(asked.keys)
        count = len(found)
        if asked.most:
            found = [key for key in found if self.keys[key].created <= asked.most]
        if asked.by_creation:
            found.sort(key=lambda key: self.keys[key].created)
        if asked.descends:
            found.reverse()
        rows = [self._row(key) for key in (found[: asked.limit] if asked.limit else found)]
        answer: Body = {"kvs": rows} if rows else {}
        if len(rows) < len(found):
            answer["more"] = True
        if count:
            answer["count"] = str(count)
        return answer

    def _between(self, keys: Keys) -> list[bytes]:
        """Return the existing keys of a range, in order."""
        first, end = keys
        if not end:
            return [first] if first in self.keys else []
        found = [key for key in self.keys if first <= key < end]
        found.sort()
        return found

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

    def _txn(self, txn: Txn) -> Body:
        if txn.clashes:
            raise Refused(_INVALID, "etcdserver: duplicate key given in txn request")
        succeeded = True
        for compare in txn.compares:
            if not self._holds(compare):
                succeeded = False
                break
        ops = txn.success if succeeded else txn.failure
        answers = self._change(ops)
        answer: Body = {"header": self._header()}
        if succeeded:
            answer["succeeded"] = True
        if ops:
            answer["responses"] = [
                {_ANSWERED[type(op)]: answer} for op, answer in zip(ops, answers, strict=True)
            ]
        return answer

    def _holds(self, compare: Compare) -> bool:
        """Return whether a comparison is true; with a range, for each of its keys."""
        keys = self._between(compare.keys)
        if not keys:
            return compare.wanted == 0
        return all(getattr(self.keys[key], compare.field) == compare.wanted for key in keys)

    def _change(self, ops: list[Op]) -> list[Body]:
        """Execute the ops of one request, all at one revision.

        Each answer has a header with the revision after that op.
        """
        for op in ops:
            if isinstance(op, Put) and op.lease and op.lease not in self.leases:
                raise Refused(_NOT_FOUND, "etcdserver: requested lease not found")
        after = self.revision + 1
        answers: list[Body] = []
        for op in ops:
            answer: Body = {}
            if isinstance(op, Range):
                answer = self._range(op)
            elif isinstance(op, Put):
                self._put(op, after)
                self.revision = after
            else:
                gone = self._between(op.keys)
                if gone:
                    self.revision = after
                    answer["deleted"] = str(len(gone))
                for key in gone:
                    self._remove(key)
            answers.append({"header": self._header(), **answer})
        return answers

    # The lock service (queue.py).

    def enter(self, body: Body) -> tuple[bytes, bytes, int]:
        """Enter a lock's queue; return the lock's name, the key of the lease, and its create
        revision."""
        lease = int(body["lease"])
        if lease not in self.leases:
            raise Refused(_NOT_FOUND, "etcdserver: requested lease not found")
        name = bytes_of(body["name"]) + b"/"
        key = name + f"{lease:x}".encode()
        if key not in self.keys:
            self._change([Put(key, b"", lease)])
        return name, key, self.keys[key].created

    def older(self, name: bytes, created: int) -> bool:
        """Return whether the queue of a lock has an older key."""
        return any(key.startswith(name) and one.created < created for key, one in self.keys.items())

    def lock_answer(self, key: bytes) -> Body:
        return {"header": self._header(), "key": _text(key)}

    def leave(self, key: bytes) -> None:
        self._change([Delete(Keys(key, b""))])

    def _put(self, put: Put, revision: int) -> None:
        name, value, lease = put
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
        if self.events is not None:
            self.events.append((revision, name, {"kv": self._row(name)}))

    def _remove(self, name: bytes) -> None:
        key = self.keys.pop(name)
        if key.lease in self.leases:
            self.leases[key.lease].keys.discard(name)
        self.deleted.append(name)
        if self.events is not None:
            gone = {"key": _text(name), "mod_revision": str(self.revision)}
            self.events.append((self.revision, name, {"type": "DELETE", "kv": gone}))
