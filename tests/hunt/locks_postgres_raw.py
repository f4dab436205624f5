"""Locks on PostgreSQL without a driver: they speak protocol 3.0 on a plain socket."""

from __future__ import annotations

import socket
import struct
import uuid
import zlib


class Advisory:
    """The session has the lock. A client without an answer closes its session."""

    patience_s = 1.5

    def __init__(self, servers):
        self._server = servers[0]
        self._socket = None

    def acquire(self, name, ttl):
        return self._ask("pg_try_advisory_lock", name)

    def release(self, name):
        return self._ask("pg_advisory_unlock", name)

    def close(self):
        made, self._socket = self._socket, None
        if made is not None:
            made.close()

    def _ask(self, function, name):
        return self._query(f"SELECT {function}({zlib.crc32(name.encode())})")

    def _query(self, sql):
        try:
            if self._socket is None:
                self._socket = socket.create_connection(self._server, timeout=self.patience_s)
                user = b"user\0postgres\0database\0postgres\0\0"
                self._socket.sendall(struct.pack("!II", 8 + len(user), 196608) + user)
                self._answer()
            query = f"{sql}\0".encode()
            self._socket.sendall(b"Q" + struct.pack("!I", 4 + len(query)) + query)
            return self._answer()
        except OSError:
            self.close()
            raise TimeoutError("no answer") from None

    def _answer(self):
        """Read up to ReadyForQuery; return whether the row is true."""
        found = False
        while True:
            kind, size = struct.unpack("!cI", self._read(5))
            body = self._read(size - 4)
            if kind == b"D":
                found = body.endswith(b"t")
            if kind == b"E":
                raise OSError(body.decode(errors="replace"))
            if kind == b"Z":
                return found

    def _read(self, size):
        read = b""
        while len(read) < size:
            more = self._socket.recv(size - len(read))
            if not more:
                raise OSError("closed")
            read += more
        return read


class SilenceIsConsent(Advisory):
    """The same, but a client without an answer believes that it has the lock."""

    def acquire(self, name, ttl):
        try:
            return super().acquire(name, ttl)
        except TimeoutError:
            return True


class Lease(Advisory):
    """A lease in a row, by the server's clock. Its transaction ends before acquire returns."""

    def __init__(self, servers):
        super().__init__(servers)
        self._owner = uuid.uuid4().hex

    def acquire(self, name, ttl):
        self._query("CREATE TABLE IF NOT EXISTS leases (name text PRIMARY KEY, owner text, "
                    "until timestamptz NOT NULL)")  # fmt: skip
        self._query("BEGIN")
        granted = self._query(
            f"INSERT INTO leases VALUES ('{name}', '{self._owner}', "
            f"now() + {ttl} * interval '1 second') "
            "ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, until = excluded.until "
            "WHERE leases.until < now() RETURNING true"
        )
        self._query("COMMIT")
        return granted

    def release(self, name):
        return self._query(
            f"DELETE FROM leases WHERE name = '{name}' AND owner = '{self._owner}' RETURNING true"
        )
