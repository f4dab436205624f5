"""Registers in NATS: a key each, and a write whose condition is the key's revision.

The revision counts the writes of all keys of the bucket, so the version is part of the value.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from fencepost.workloads.contract.guard import Rule
from fencepost.workloads.contract.lock import Failed, Grant
from fencepost.workloads.contract.resource import register
from fencepost.workloads.contract.store import Opening, Store
from fencepost.workloads.transport.nats_bucket import Bucket, OtherRevision


class NatsRegister:
    """Registers in a bucket that these servers keep together. `timeout_s` is for one request."""

    def __init__(self, at: Opening, servers: Sequence[str], timeout_s: float) -> None:
        addresses = [at.env.address(server) for server in servers]
        self._bucket = Bucket("resources", addresses, timeout_s)
        self._guard = at.guard
        self._refused = at.rule.refused
        # The revision of each version that was read, by key.
        self._read: dict[str, tuple[int, int]] = {}

    def read(self, resource: str) -> tuple[Any, int]:
        self._bucket.open()
        name = register(resource)
        entry = self._bucket.get(name)
        value, version = json.loads(entry.value) if entry else (None, 0)
        self._read[name] = version, entry.revision if entry else 0
        return value, version

    def write(self, resource: str, value: Any, version: int, grant: Grant | None) -> int:
        self._guard.require(grant)
        self._bucket.open()
        name = register(resource)
        if self._read.get(name, (-1, 0))[0] != version:
            self.read(resource)
        current, revision = self._read[name]
        if current != version:
            raise Failed("refused", self._refused)
        try:
            self._bucket.update(name, json.dumps([value, version + 1]).encode(), revision)
        except OtherRevision as error:
            raise Failed("refused", self._refused) from error
        return version + 1

    def close(self) -> None:
        self._bucket.close()


# Faults strike the lock's servers, and an answer that is lost never comes.
_FAULTED_S = 5.0
_RULES = {"compare-and-set": Rule(refused="the key has another revision")}
STORE = Store(
    "nats",
    "a key of a bucket in a separate NATS server",
    lambda at: NatsRegister(at, [at.storage], at.timeout_s),
    kind="nats",
    rules=_RULES,
)
BESIDE = Store(
    "jetstream",
    "the same key in the lock's own NATS servers",
    lambda at: NatsRegister(at, at.servers, min(at.timeout_s, _FAULTED_S)),
    beside="nats",
    rules=_RULES,
)
