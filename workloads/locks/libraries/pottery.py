"""pottery's Redlock on five servers, which it asks in its own threads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from fencepost.workloads.contract.lock import Env, Failed, Grant, Indeterminate
from fencepost.workloads.contract.locktype import LockType
from fencepost.workloads.contract.option import Option
from fencepost.workloads.locks.libraries.redis_client import CLIENT_RETRIES, connect
from fencepost.workloads.transport.deferred import Deferred, load

if TYPE_CHECKING:
    import pottery
else:
    pottery = Deferred("pottery")

# The part of a lease that pottery itself subtracts (redlock.py, __drift).
_DRIFT_FACTOR = 0.01
_DRIFT_NS = 2_000_000


class PotteryLock:
    """`options`: wait_ms, node_timeout_ms, client_retries."""

    def __init__(self, env: Env, nodes: Sequence[str], options: Mapping[str, Any]) -> None:
        load(pottery)
        self._env = env
        self._wait_s = options["wait_ms"] / 1000
        self._masters = {connect(env, node, options) for node in nodes}
        self._held: dict[str, pottery.Redlock] = {}

    def acquire(self, name: str, ttl_ns: int) -> Grant:
        begun = self._env.now()
        lock = pottery.Redlock(key=name, masters=self._masters, auto_release_time=ttl_ns / 1e9)
        if not lock.acquire(timeout=self._wait_s):
            raise Failed("not-granted", f"not granted within {self._wait_s:g} s")
        secret = self._env.random.randbytes(8).hex()
        self._held[secret] = lock
        return Grant(name, None, _valid_until(begun, ttl_ns), secret, assumed=True)

    def extend(self, grant: Grant, ttl_ns: int) -> Grant:
        begun = self._env.now()
        try:
            self._held[grant.secret].extend()
        except pottery.ExtendUnlockedLock as error:
            raise _not_held(error) from error
        except pottery.PotteryError as error:
            raise Failed("not-held", type(error).__name__) from error
        return replace(grant, deadline=_valid_until(begun, ttl_ns))

    def release(self, grant: Grant) -> None:
        try:
            self._held.pop(grant.secret).release()
        except pottery.ReleaseUnlockedLock as error:
            raise _not_held(error) from error

    def close(self) -> None:
        for master in self._masters:
            master.close()


def _valid_until(begun: int, ttl_ns: int) -> int:
    return begun + ttl_ns - int(ttl_ns * _DRIFT_FACTOR) - _DRIFT_NS


def _not_held(error: Any) -> Failed:
    """Build the error of an unsuccessful verb: a server that did not answer may have carried it
    out. pottery's own messages are pages long."""
    kind = type(error).__name__
    if error.redis_errors:
        return Indeterminate("no-quorum", f"{kind}: {len(error.redis_errors)} without an answer")
    return Failed("not-held", kind)


LOCK = LockType(
    name="pottery",
    what="library pottery (PyPI): its Redlock on five Redis servers",
    make=PotteryLock,
    servers=5,
    options={
        "wait_ms": Option(1000, least=1, what="how long acquire waits for the lock"),
        "node_timeout_ms": Option(50, least=1, what="how long one request may take"),
        "client_retries": Option(0, what=CLIENT_RETRIES),
    },
    promises={"minority": True},
    library="pottery",
)
