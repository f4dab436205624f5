"""A port of npm's redlock 4, which `node-redlock` runs as a separate program.

A port can be simulated, so that a hunt finds the library's defects (docs/libraries.md), and runs on
real servers like every lock here. The original is Redlock.prototype._lock of redlock 4.2.0:

- all servers are asked at once, and a try is judged when all have answered;
- acquire and extend are one loop: a try without a quorum, or one that took too long, *unlocks* on
  every server, and is retried after `retry_delay_ms` +- `retry_jitter_ms`. So an extension
  without a quorum releases the lock that its caller still holds;
- an unlock counts every server that answers, also one that had no such key.

Differences from the original: time is monotonic, a server's timeout begins when its reply is read,
and a server that refuses the connection is asked again only at the next try.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from fencepost.workloads.contract.lock import Env, Failed, Grant, Indeterminate, Link
from fencepost.workloads.contract.locktype import LockType
from fencepost.workloads.contract.option import Option
from fencepost.workloads.locks.redis import EXTEND, RELEASE, key

_DRIFT_FACTOR = 0.01
_DRIFT_NS = 2_000_000


class NpmRedlock:
    """`options`: retries, retry_delay_ms, retry_jitter_ms, node_timeout_ms."""

    def __init__(self, env: Env, nodes: Sequence[str], options: Mapping[str, Any]) -> None:
        self._env = env
        self._options = options
        timeout_s = options["node_timeout_ms"] / 1000
        self._links: list[Link] = [env.connect(node, timeout_s) for node in nodes]
        self._quorum = len(nodes) // 2 + 1

    def acquire(self, name: str, ttl_ns: int) -> Grant:
        secret = self._env.random.randbytes(16).hex()
        request = ("SET", key(name), secret, "NX", "PX", ttl_ns // 1_000_000)
        deadline = self._lock(name, secret, request, ttl_ns)
        if deadline is None:
            raise Failed("not-granted", f"no quorum in {self._options['retries'] + 1} tries")
        return Grant(name, None, deadline, secret)

    def extend(self, grant: Grant, ttl_ns: int) -> Grant:
        assert grant.deadline is not None
        if grant.deadline < self._env.now():
            raise Failed("no-quorum", "the lease has expired already")
        request = ("EVAL", EXTEND, 1, key(grant.name), grant.secret, ttl_ns // 1_000_000)
        deadline = self._lock(grant.name, grant.secret, request, ttl_ns)
        if deadline is None:
            raise Failed("no-quorum", f"not extended in {self._options['retries'] + 1} tries")
        return replace(grant, deadline=deadline)

    def _lock(self, name: str, secret: str, request: tuple[Any, ...], ttl_ns: int) -> int | None:
        """Return the deadline once a try has a quorum in time; None if no try has."""
        retries, delay, jitter = (
            self._options[option] for option in ("retries", "retry_delay_ms", "retry_jitter_ms")
        )
        for attempt in range(retries + 1):
            if attempt:
                self._env.sleep(max(0, delay + self._env.random.uniform(-jitter, jitter)) / 1000)
            begun = self._env.now()
            yes = [answer for answer in self._everywhere(request) if answer]
            deadline = begun + ttl_ns - int(ttl_ns * _DRIFT_FACTOR) - _DRIFT_NS
            if len(yes) >= self._quorum and deadline > self._env.now():
                return deadline
            self._unlock(name, secret)
        return None

    def release(self, grant: Grant) -> None:
        if self._unlock(grant.name, grant.secret) < self._quorum:
            raise Indeterminate("no-quorum", "too few servers answered the release")

    def _unlock(self, name: str, secret: str) -> int:
        """Delete the lock on every server that has it for this holder; return how many servers
        answered."""
        return len(self._everywhere(("EVAL", RELEASE, 1, key(name), secret)))

    def _everywhere(self, request: tuple[Any, ...]) -> list[Any]:
        """Ask all servers at once; return the answers received."""
        asked = []
        for link in self._links:
            try:
                link.send(*request)
            except Failed:
                continue
            asked.append(link)
        answers = []
        for link in asked:
            try:
                answers.append(link.receive())
            except Failed:
                continue
        return answers

    def close(self) -> None:
        for link in self._links:
            link.close()


LOCK = LockType(
    name="redlock-npm",
    what="npm redlock's algorithm, ported: an extension without a quorum unlocks",
    make=NpmRedlock,
    servers=5,
    options={
        "retries": Option(10, what="number of retries before it gives up"),
        "retry_delay_ms": Option(200, least=1, what="average time between two tries"),
        "retry_jitter_ms": Option(100, what="maximal deviation from that time"),
        "node_timeout_ms": Option(50, least=1, what="timeout for one server"),
    },
    promises={"minority": True},
)
