"""Chubby's three remedies against a late holder, on etcd (Burrows, OSDI 2006).

*Sequencer*: a hold is named by its key (with name and mode), and numbered by a generation that
rises whenever the lock goes from free to held. *CheckSequencer*: a resource asks whether the key
still exists. *Lock-delay*: if a holder's session ends without a release, the lock is not granted
for that time; a second key represents it, whose lease outlives the session's by the delay.
Exclusive and shared mode. A client that finds the lock held retries after a while, as Chubby's
TryAcquire clients do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from fencepost.workloads.contract.lock import Env, Failed, Grant, Indeterminate
from fencepost.workloads.contract.option import POLLS, WAITS, Option
from fencepost.workloads.locks import etcd
from fencepost.workloads.locks.etcd_session import Session
from fencepost.workloads.locks.retry import tries
from fencepost.workloads.transport.etcd_gateway import Gateway, after, key_is, plain, text


class ChubbyLock:
    """`options`: lock_delay_ms, retries, retry_delay_ms, node_timeout_ms."""

    def __init__(self, env: Env, nodes: Sequence[str], options: Mapping[str, Any]) -> None:
        self._env = env
        self._options = options
        timeout_s = options["node_timeout_ms"] / 1000
        self._gateway = Gateway([env.address(node) for node in nodes], timeout_s, env.now, env.pool)
        self._delay = delay = Session(env, nodes, timeout_s)
        # Holds whose release did not reach etcd: while their sessions live, so would they.
        self._left: dict[str, tuple[str, int, str]] = {}
        # The delay begins when the session ends, because its key is no longer renewed then.
        self._session = Session(env, nodes, timeout_s, lambda lease: delay.abandon())

    def acquire(self, name: str, ttl_ns: int) -> Grant:
        return self._acquire(name, ttl_ns, shared=False)

    def acquire_shared(self, name: str, ttl_ns: int) -> Grant:
        return self._acquire(name, ttl_ns, shared=True)

    def _acquire(self, name: str, ttl_ns: int, shared: bool) -> Grant:
        delayed_ns = ttl_ns + self._options["lock_delay_ms"] * 1_000_000
        for _ in tries(self._env, self._options):
            self._give_back()
            names = _Names(name, *self._leases(ttl_ns, delayed_ns))
            taken = self._try(names, shared)
            if taken is None:
                continue
            key, revision, generation = taken
            if self._session.lease != names.lease:
                # The session ended during the acquire, so nothing would keep the hold alive.
                self._left[key] = key, revision, names.delay
                continue
            secret = f"{key} {revision}"
            self._session.hold(secret)
            deadline = self._session.deadline
            token = None if shared else generation
            return Grant(name, token, deadline, secret, sequencer=(key, revision))
        raise Failed("not-granted", f"held by another after {self._options['retries'] + 1} tries")

    def _leases(self, ttl_ns: int, delayed_ns: int) -> tuple[int, int]:
        """Open the leases of both sessions, the delay's first: if the session ended while the other
        is being opened, no delay would follow."""
        while True:
            delay = self._delay.open(delayed_ns)
            session = self._session.open(ttl_ns)
            if self._delay.lease == delay:
                return session, delay

    def _try(self, names: _Names, shared: bool) -> tuple[str, int, int] | None:
        """Try once; return the key, its create revision and the generation, or None if the lock is
        not free."""
        found = self._under(names.generation)
        generation, seen = (int(found[0][1]), found[0][3]) if found else (0, 0)
        readers = self._under(names.readers) if shared else []
        free = [key_is(names.exclusive, 0)]
        if readers:
            # All existing keys: one whose session ended would mean a delay for all clients.
            free += [key_is(key, created) for key, _, created, _ in readers]
        else:
            free += [_none_under(names.readers), _none_under(names.delays)]
            generation += 1
        unchanged = {
            "key": text(names.generation),
            "target": "MOD",
            "result": "EQUAL",
            "mod_revision": str(seen),
        }
        key = names.reader if shared else names.exclusive
        puts = [
            {"request_put": {"key": text(key), "lease": str(names.lease)}},
            {"request_put": {"key": text(names.delay), "lease": str(names.delay_lease)}},
            {"request_put": {"key": text(names.generation), "value": text(str(generation))}},
        ]
        body = {"compare": [*free, unchanged], "success": puts}
        answer = self._gateway.call("kv/txn", body)
        if not answer.get("succeeded"):
            return None
        return key, int(answer["header"]["revision"]), generation

    def _under(self, prefix: str) -> list[tuple[str, str, int, int]]:
        """Return the keys with this prefix: key, value, create and mod revision of each."""
        body = {"key": text(prefix), "range_end": text(after(prefix))}
        return [
            (
                plain(row["key"]),
                plain(row.get("value", "")),
                int(row["create_revision"]),
                int(row["mod_revision"]),
            )
            for row in self._gateway.ask("kv/range", body).get("kvs", ())
        ]

    def extend(self, grant: Grant, ttl_ns: int) -> Grant:
        return self._session.extend(grant)

    def release(self, grant: Grant) -> None:
        assert grant.sequencer is not None
        self._session.let_go(grant.secret)
        key, revision = grant.sequencer
        names = _Names(grant.name, self._session.lease, self._delay.lease)
        self._left[key] = key, revision, names.delay
        if not self._delete(key, revision, names.delay):
            raise Failed("not-held", "the key is gone: the session ended")

    def _give_back(self) -> None:
        """Delete the keys of holds that could not be released."""
        try:
            for left in list(self._left.values()):
                self._delete(*left)
        except Indeterminate as error:
            raise Failed("not-granted", error.text) from error

    def _delete(self, key: str, revision: int, delay: str) -> bool:
        """Delete the keys of a hold, if they still exist; return whether they did."""
        deletes = [{"request_delete_range": {"key": text(k)}} for k in (key, delay)]
        body = {"compare": [key_is(key, revision)], "success": deletes}
        deleted = bool(self._gateway.call("kv/txn", body).get("succeeded"))
        del self._left[key]
        return deleted

    def close(self) -> None:
        self._session.close()
        self._delay.close()
        self._gateway.close()


@dataclass(frozen=True)
class _Names:
    """The keys of one lock, for one client with its two leases."""

    name: str
    lease: int
    delay_lease: int

    @property
    def _folder(self) -> str:
        return f"fencepost/chubby/{self.name}"

    @property
    def generation(self) -> str:
        return f"{self._folder}/generation"

    @property
    def exclusive(self) -> str:
        return f"{self._folder}/exclusive"

    @property
    def readers(self) -> str:
        return f"{self._folder}/shared/"

    @property
    def reader(self) -> str:
        return f"{self.readers}{self.lease:x}"

    @property
    def delays(self) -> str:
        return f"{self._folder}/delay/"

    @property
    def delay(self) -> str:
        return f"{self.delays}{self.delay_lease:x}"


def _none_under(prefix: str) -> dict[str, Any]:
    """Return a comparison: no key has this prefix."""
    return {**key_is(prefix, 0), "range_end": text(after(prefix))}


LOCK = replace(
    etcd.LOCK,
    name="chubby",
    reference=None,
    what="Chubby's sequencer, generation and lock-delay, on etcd (Burrows 2006)",
    make=ChubbyLock,
    options={
        "token": Option("generation", ("generation",), what="rises as the lock is taken"),
        "lock_delay_ms": Option(
            1000, what="the lock is not granted for this time after a session has ended"
        ),
        **POLLS,
        "retries": Option(50, what="retries before acquire gives up"),
        "node_timeout_ms": WAITS["node_timeout_ms"],
    },
    promises={"minority": True},
    shared=True,
)
