"""Random requests for etcd, as locks send them and invalid ones."""

from __future__ import annotations

from random import Random
from typing import Any

from fencepost.workloads.transport.etcd_gateway import after, text

NAMES_OF_KEYS = ("lock/a", "lock/b", "lock/c", "other")
LEASES = (11, 12, 13)


class EtcdRequests:
    """Random requests, as locks send them and invalid ones."""

    def __init__(self, random: Random) -> None:
        self._random = random

    def draw(self) -> tuple[str, dict[str, Any]]:
        random = self._random
        match random.randrange(9):
            case 0 | 1:
                return "kv/put", self._put()
            case 2:
                return "kv/deleterange", self._range()
            case 3:
                return "kv/range", self._sorted()
            case 4:
                return "lease/grant", {"TTL": "3600", "ID": str(random.choice(LEASES))}
            case 5:
                return "lease/revoke", {"ID": str(random.choice(LEASES))}
            case 6:
                return "lease/keepalive", {"ID": str(random.choice(LEASES))}
        return "kv/txn", {
            "compare": [self._compare() for _ in range(random.randrange(3))],
            "success": [self._op() for _ in range(random.randrange(3))],
            "failure": [self._op() for _ in range(random.randrange(2))],
        }

    def _key(self) -> str:
        return self._random.choice(NAMES_OF_KEYS)

    def _put(self) -> dict[str, Any]:
        lease = self._random.choice((0, 0, *LEASES))
        put = {"key": text(self._key()), "value": text(self._random.choice(("", "x", "1")))}
        return put | ({"lease": str(lease)} if lease else {})

    def _range(self) -> dict[str, Any]:
        if self._random.random() < 0.3:
            return {"key": text("lock/"), "range_end": text(after("lock/"))}
        return {"key": text(self._key())}

    def _sorted(self) -> dict[str, Any]:
        more = {
            "sort_order": "DESCEND",
            "sort_target": "CREATE",
            "max_create_revision": str(self._random.randrange(1, 500)),
            "limit": "1",
        }
        return self._range() | (more if self._random.random() < 0.5 else {})

    def _compare(self) -> dict[str, Any]:
        target, name = self._random.choice(
            (("CREATE", "create_revision"), ("MOD", "mod_revision"), ("VERSION", "version"))
        )
        number = str(self._random.choice((0, 0, 1, 2, self._random.randrange(100))))
        return {**self._range(), "target": target, "result": "EQUAL", name: number}

    def _op(self) -> dict[str, Any]:
        kind = self._random.choice(("put", "range", "delete_range"))
        return {f"request_{kind}": self._put() if kind == "put" else self._range()}
