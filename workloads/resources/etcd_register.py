"""Registers in etcd, next to the lock: a write is one transaction with "my key still exists".

The version is etcd's own count of the key's changes. Only a store that holds both the lock and the
data can do without fencing tokens.
"""

from __future__ import annotations

from typing import Any

from fencepost.workloads.contract.guard import Rule
from fencepost.workloads.contract.lock import Failed, Grant
from fencepost.workloads.contract.resource import register
from fencepost.workloads.contract.store import Opening, Store
from fencepost.workloads.transport.etcd_gateway import Gateway, key_is, plain, text


class EtcdRegister:
    def __init__(self, at: Opening) -> None:
        addresses = [at.env.address(server) for server in at.servers]
        self._gateway = Gateway(addresses, at.timeout_s, at.env.now, at.env.pool)
        self._guard = at.guard
        self._refused = at.rule.refused

    def read(self, resource: str) -> tuple[Any, int]:
        found = self._gateway.ask("kv/range", {"key": _key(resource)}).get("kvs")
        return (plain(found[0]["value"]), int(found[0]["version"])) if found else (None, 0)

    def write(self, resource: str, value: Any, version: int, grant: Grant | None) -> int:
        self._guard.require(grant)
        assert grant is not None and grant.sequencer is not None
        body = {
            "compare": [key_is(*grant.sequencer)],
            "success": [
                {"request_put": {"key": _key(resource), "value": text(value)}},
                {"request_range": {"key": _key(resource)}},
            ],
        }
        answer = self._gateway.call("kv/txn", body)
        if not answer.get("succeeded"):
            raise Failed("refused", self._refused)
        return int(answer["responses"][1]["response_range"]["kvs"][0]["version"])

    def close(self) -> None:
        self._gateway.close()


def _key(resource: str) -> str:
    return text(f"fencepost/resource/{register(resource)}")


STORE = Store(
    "etcd",
    "a key in etcd, next to the lock's",
    EtcdRegister,
    rules={"transaction": Rule(refused="the lock's key does not exist any more")},
)
