"""Redlock: one lock on N independent Redis servers, as its specification says.

The algorithm is that of "Distributed locks with Redis" (redis.io), by Salvatore Sanfilippo: take
the time; SET NX PX with the same random value on the N servers one after the other, each with a
timeout far below the TTL; the lock is granted if at least N/2+1 servers granted it and time is
left; it is then valid for TTL - elapsed - drift; else release on every server, also on those that
did not answer, and retry after a random delay.

Two things in it are options, because the debate turns on them. `clock_check: false` leaves out the
clock check after the servers answered, as Kleppmann (2016) described it, to which Sanfilippo
replied; such a client can only count its lease from there. `token` chooses the source of a fencing
token, which the specification lacks: `value` reads the random value as a number, `one` counts on
the first server, `majority` counts on every server together with the SET and takes the highest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec

from fencepost.workloads.contract.lock import Env, Failed, Grant, Indeterminate, Link
from fencepost.workloads.contract.locktype import LockType, Reference
from fencepost.workloads.contract.option import POLLS, Option
from fencepost.workloads.locks.redis import ACQUIRE_COUNTED, EXTEND, RELEASE, counter, key
from fencepost.workloads.locks.retry import tries

# The drift allowed for clocks that run at different rates: 1 % of the TTL, and 2 ms for the
# resolution of Redis' expiry (the specification's own reference implementation in Ruby).
DRIFT_FACTOR = 0.01
DRIFT_NS = 2_000_000


class _Answers(msgspec.Struct):
    """The answers of the servers to one request: yes, no, or none."""

    yes: dict[str, Any]
    no: list[str]
    silent: list[str]

    def describe(self) -> str:
        silent = f", no answer from {', '.join(self.silent)}" if self.silent else ""
        return f"{len(self.yes)} of {len(self.yes) + len(self.no) + len(self.silent)}{silent}"


class Redlock:
    """`options`: token, clock_check, retries, retry_delay_ms, node_timeout_ms."""

    def __init__(self, env: Env, nodes: Sequence[str], options: Mapping[str, Any]) -> None:
        self._env = env
        self._options = options
        timeout_s = options["node_timeout_ms"] / 1000
        self._links: dict[str, Link] = {node: env.connect(node, timeout_s) for node in nodes}
        self._last = nodes[-1]
        self._quorum = len(nodes) // 2 + 1

    def acquire(self, name: str, ttl_ns: int) -> Grant:
        why = ""
        for _ in tries(self._env, self._options, shortest=0):
            secret = self._env.random.randbytes(20).hex()
            try:
                return self._try(name, ttl_ns, secret)
            except Failed as error:
                why = error.text
                self._everywhere(("EVAL", RELEASE, 1, key(name), secret))
        raise Failed("not-granted", f"{why} (try {self._options['retries'] + 1})")

    def _try(self, name: str, ttl_ns: int, secret: str) -> Grant:
        begun = self._env.now()
        answers = self._everywhere(
            self._request(name, secret, ttl_ns // 1_000_000), "replies-in-flight"
        )
        if len(answers.yes) < self._quorum:
            raise Failed("not-granted", f"granted by {answers.describe()}, {self._quorum} needed")
        token = self._token(name, secret, answers)
        answered = self._env.now()
        validity = ttl_ns - (answered - begun) - _drift(ttl_ns)
        if not self._options["clock_check"]:
            validity = ttl_ns - _drift(ttl_ns)
        elif validity <= 0:
            late_ms = (answered - begun) / 1e6
            raise Failed(
                "not-granted", f"granted by {answers.describe()}, but after {late_ms:.0f} ms"
            )
        return Grant(
            name, token, answered + validity, secret, granted_by=tuple(sorted(answers.yes))
        )

    def _request(self, name: str, secret: str, ttl_ms: int) -> tuple[Any, ...]:
        if self._options["token"] == "majority":
            return ("EVAL", ACQUIRE_COUNTED, 2, key(name), counter(name), secret, ttl_ms)
        return ("SET", key(name), secret, "NX", "PX", ttl_ms)

    def _token(self, name: str, secret: str, answers: _Answers) -> int | None:
        source = self._options["token"]
        if source == "value":
            return int(secret[:15], 16)
        if source == "majority":
            return max(int(count) for count in answers.yes.values())
        if source == "one":
            first = next(iter(self._links.values()))
            try:
                return int(first.call("INCR", counter(name)))
            except Failed as error:
                raise Failed("not-granted", f"no token: {error.text}") from error
        return None

    def extend(self, grant: Grant, ttl_ns: int) -> Grant:
        begun = self._env.now()
        answers = self._everywhere(
            ("EVAL", EXTEND, 1, key(grant.name), grant.secret, ttl_ns // 1_000_000)
        )
        self._need_quorum("extended", answers, Failed)
        deadline = begun + ttl_ns - _drift(ttl_ns)
        if self._options["clock_check"] and self._env.now() >= deadline:
            raise Failed("no-quorum", f"extended by {answers.describe()}, but too late")
        return replace(grant, deadline=deadline)

    def release(self, grant: Grant) -> None:
        answers = self._everywhere(("EVAL", RELEASE, 1, key(grant.name), grant.secret))
        self._need_quorum("released", answers, Indeterminate)

    def _need_quorum(self, done: str, answers: _Answers, unsure: type[Failed]) -> None:
        """Raise an error without a quorum. `unsure` is raised if the silent servers could have made
        it."""
        if len(answers.yes) >= self._quorum:
            return
        text = f"{done} by {answers.describe()}, {self._quorum} needed"
        if len(answers.yes) + len(answers.silent) >= self._quorum:
            raise unsure("no-quorum", text)
        raise Failed("not-held", text)

    def _everywhere(self, request: tuple[Any, ...], failpoint: str | None = None) -> _Answers:
        """Ask the servers one after the other; before the last one's reply is a failpoint."""
        answers = _Answers({}, [], [])
        for node, link in self._links.items():
            try:
                link.send(*request)
                if failpoint and node == self._last:
                    self._env.failpoint(failpoint)
                answer = link.receive()
            except Failed:
                answers.silent.append(node)
                continue
            if answer:
                answers.yes[node] = answer
            else:
                answers.no.append(node)
        return answers

    def close(self) -> None:
        for link in self._links.values():
            link.close()


def _drift(ttl_ns: int) -> int:
    return int(ttl_ns * DRIFT_FACTOR) + DRIFT_NS


LOCK = LockType(
    name="redlock",
    what="Redlock on five independent Redis servers (redis.io, Sanfilippo)",
    make=Redlock,
    servers=5,
    options={
        "token": Option(
            "none",
            ("none", "value", "one", "majority"),
            what=(
                "source of a token: none; the random value read as a number; INCR on the first "
                "server; the highest INCR of the servers that granted"
            ),
        ),
        "clock_check": Option(
            True, (True, False), what="check the clock after the servers answered"
        ),
        **POLLS,
    },
    promises={"minority": True},
    reference=Reference(),
)
