"""A sound lock service with leases, and a resource that accepts every write."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from long_runs.state import Answer, Client, Cuts, Grant, Lock
from long_runs.virtual_time import MS, VirtualTime


class Service:
    def __init__(self, time: VirtualTime, cuts: Cuts, locks: Iterable[str], ttl: int) -> None:
        self._time, self._cuts, self._ttl = time, cuts, ttl
        self._locks = {lock: Lock(lock) for lock in locks}
        self._stored: dict[str, tuple[int, str | None]] = {}
        self._tokens = 0

    def serve(
        self, client: Client, life: int, f: str, value: dict[str, Any], answer: Answer
    ) -> None:
        """Carry out an op that arrived, and answer it: at once, or once its lock is free."""
        if f == "acquire":
            lock = self._locks[value["lock"]]
            lock.queue.append((client, life, lock.held is not None or bool(lock.queue), answer))
            self._grant(lock)
            return
        grant, type, found, error = client.grant, "ok", {}, None
        if client.life != life:  # the client was killed meanwhile; its write arrives all the same
            grant = None
        if f == "read":
            version, text = self._stored.get(value["resource"], (0, None))
            found = {"value": text, "version": version}
        elif f == "write":
            version = self._stored.get(value["resource"], (0, None))[0] + 1
            self._stored[value["resource"]] = version, value["value"]
            found = {"stored": version}
        elif grant is None or grant.lock.held is not grant:
            type, error = "fail", ["not-held", "the key is gone: the lease ended"]
        elif f == "extend":
            grant.expires = self._time.now + self._ttl
            found = {"deadline": grant.expires - 2 * MS}
        else:
            self.free(grant)
        self._time.at(self._time.ms(0.3, 4), answer, client, life, type, found, error)

    def _grant(self, lock: Lock) -> None:
        if lock.held or not lock.queue:
            return
        client, life, waited, answer = lock.queue.popleft()
        self._tokens += 1
        client.grants += client.life == life
        name = f"{client.process}-{client.grants}"
        grant = Grant(client, life, name, lock, self._tokens, self._time.now + self._ttl)
        lock.held = grant
        self._time.at(self._ttl / 3, self._renew, grant)
        if client.life == life:
            client.grant = grant
            value = {"token": grant.token, "deadline": grant.expires - 5 * MS, "hold": name}
            value["wakeups"] = int(waited)
            self._time.at(self._time.ms(2, 8), answer, client, life, "ok", value)

    def free(self, grant: Grant) -> None:
        """End a grant; the next one follows."""
        if grant.lock.held is grant:
            grant.lock.held = None
            self._time.at(self._time.ms(1, 4), self._grant, grant.lock)

    def _renew(self, grant: Grant) -> None:
        """Keep the lease alive while the client's library can; otherwise it expires."""
        client = grant.client
        if grant.lock.held is not grant:
            return
        if self._keeps(client, grant):
            grant.expires = self._time.now + self._ttl
            value = {"lock": grant.lock.name, "hold": grant.name}
            value["deadline"] = grant.expires - 5 * MS
            self._time.record(client.process, "info", "renewed", value, client.node)
            self._time.at(self._ttl / 3, self._renew, grant)
        elif self._time.now < grant.expires:
            self._time.at(min(self._ttl / 3, grant.expires - self._time.now), self._renew, grant)
        else:
            self.free(grant)

    def _keeps(self, client: Client, grant: Grant) -> bool:
        """Return whether the client's library has the grant and can reach the service."""
        there = client.alive and client.life == grant.life and self._time.now >= client.wakes
        granted = client.asked is None or client.asked[0] != "acquire"
        return there and granted and not self._cuts.between(client, client.server)
