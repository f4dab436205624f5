"""A lock of a session, which a sleeping holder keeps for as long as its connection lives."""

import zlib

import psycopg

from fencepost.workloads.contract.defect import Defect


class Lock:
    def __init__(self, servers):
        host, port = servers[0]
        self.connection = psycopg.connect(host=host, port=port, user="postgres", autocommit=True)

    def acquire(self, name, ttl):
        # A release ends it, or the end of the connection. The TTL has no effect.
        return self.ask("SELECT pg_try_advisory_lock(%s)", name)

    def release(self, name):
        return self.ask("SELECT pg_advisory_unlock(%s)", name)

    def ask(self, sql, name):
        return self.connection.execute(sql, [zlib.crc32(name.encode())]).fetchone()[0]

    def close(self):
        self.connection.close()


DEFECT = Defect(
    name="lease-never-ends-while-connected",
    family="lease",
    what="A lease is asked for and ignored: a sleeping holder keeps the lock while its TCP "
    "connection lives.",
    seen="PostgreSQL's session-level advisory locks behind an interface with a TTL",
    breaks="A lease ends by itself.",
    checker="liveness",
    faults=("pause:client",),
    servers="postgres:1",
    ends_with="lease",
    hunt="psycopg's connections are made outside of Python",
    twin=False,
)
