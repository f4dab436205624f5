"""Locks on PostgreSQL in the plain contract, by pg8000: advisory locks, and leases in rows."""

from __future__ import annotations

import contextlib
import uuid
import zlib
from contextlib import suppress

import pg8000.native
from pg8000.exceptions import DatabaseError, InterfaceError

ANSWERS_S = 1.5
_LEASES = """
CREATE TABLE IF NOT EXISTS leases (
    name text PRIMARY KEY, owner text NOT NULL, until timestamptz NOT NULL)
"""


class OnPostgres:
    def __init__(self, servers):
        self._host, self._port = servers[0]
        self._connection = None

    def connection(self):
        if self._connection is None:
            self._connection = pg8000.native.Connection(
                "postgres", self._host, "postgres", self._port, timeout=ANSWERS_S
            )
            self.prepare()
        return self._connection

    def prepare(self):
        pass

    def drop(self):
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(InterfaceError, OSError):
                connection.close()

    def close(self):
        self.drop()


class Advisory(OnPostgres):
    """pg_try_advisory_lock: the session has the lock, and it is sound while it is a session."""

    def acquire(self, name, ttl):
        number = zlib.crc32(name.encode())
        try:
            rows = self.connection().run(f"SELECT pg_try_advisory_lock({number})")
        except (InterfaceError, DatabaseError, OSError):
            # If the lock was granted, it goes with the session.
            self.drop()
            raise TimeoutError("no answer") from None
        return rows[0][0]

    def release(self, name):
        number = zlib.crc32(name.encode())
        try:
            return self.connection().run(f"SELECT pg_advisory_unlock({number})")[0][0]
        except (InterfaceError, DatabaseError, OSError):
            self.drop()
            raise TimeoutError("no answer") from None


class Lease(OnPostgres):
    """A lease in a row, by the server's clock; the owner is a random word for each hold."""

    def prepare(self):
        with suppress(DatabaseError):  # another client has created it at the same time
            self._connection.run(_LEASES)

    def acquire(self, name, ttl):
        self._owner = uuid.uuid4().hex
        try:
            rows = self.connection().run(
                "INSERT INTO leases VALUES (:name, :owner, now() + :ttl * interval '1 second') "
                "ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, until = excluded.until "
                "WHERE leases.until < now() RETURNING owner",
                name=name, owner=self._owner, ttl=ttl,
            )  # fmt: skip
        except (InterfaceError, DatabaseError, OSError):
            self.drop()
            raise TimeoutError("no answer") from None
        return bool(rows)

    def release(self, name):
        try:
            rows = self.connection().run(
                "DELETE FROM leases WHERE name = :name AND owner = :owner RETURNING owner",
                name=name, owner=self._owner,
            )  # fmt: skip
        except (InterfaceError, DatabaseError, OSError):
            self.drop()
            raise TimeoutError("no answer") from None
        return bool(rows)


class LeaseOfAnyone(Lease):
    """The same without the owner: its release ends the lease of any client."""

    def release(self, name):
        try:
            self.connection().run("DELETE FROM leases WHERE name = :name", name=name)
        except (InterfaceError, DatabaseError, OSError):
            self.drop()
            raise TimeoutError("no answer") from None
        return True
