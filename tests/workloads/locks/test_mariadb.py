"""The lock on MariaDB's GET_LOCK, on a server in memory: sessions, each with its locks."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from fencepost.workloads.contract.lock import Failed
from fencepost.workloads.locks import mariadb
from fencepost.workloads.transport import mariadb_link

TTL = 3_000_000_000


class Sql:
    """A server in memory. `answers_ms` is how long each answer takes."""

    class MySQLError(Exception):
        pass

    def __init__(self, world):
        self.world = world
        self.holders = {}
        self.tokens = 0
        self.answers_ms = 0
        self.sessions = []

    def connect(self, **given):
        self.sessions.append(Session(self, given))
        return self.sessions[-1]


class Session:
    def __init__(self, server, given):
        self.server, self.given = server, given
        self.queries = []
        self.open = True

    def cursor(self):
        return nullcontext(self)

    def execute(self, query, values):
        if not self.open:
            raise Sql.MySQLError("the server has gone away")
        self.server.world.now += self.server.answers_ms * 1_000_000
        self.queries.append(query)
        self.answer = (self._answer(query, values),)

    def _answer(self, query, values):
        holders = self.server.holders
        if "GET_LOCK" in query:
            return int(holders.setdefault(values[0], self) is self)
        if "RELEASE_LOCK" in query:
            if holders.get(values[0]) is not self:
                return 0 if values[0] in holders else None
            del holders[values[0]]
        if query.startswith("UPDATE fencepost_token"):
            self.server.tokens += 1
        return self.server.tokens if "LAST_INSERT_ID()" in query else 1

    def fetchone(self):
        return self.answer

    def end(self):
        """End the session, as the server does."""
        self.open = False
        self.server.holders = {k: v for k, v in self.server.holders.items() if v is not self}

    close = end


@pytest.fixture
def server(world, monkeypatch):
    server = Sql(world)
    fake = SimpleNamespace(connect=server.connect, MySQLError=Sql.MySQLError)
    for module in (mariadb, mariadb_link):
        monkeypatch.setattr(module, "pymysql", fake)
    return server


@pytest.fixture
def lock(world, server):
    def make(**given):
        options = mariadb.LOCK.read_options({name: str(value) for name, value in given.items()})
        return mariadb.LOCK.make(world.env(), ["mariadb-1"], options)

    return make


def test_a_session_ends_by_itself_when_it_was_idle_for_the_ttl(lock, server):
    lock().acquire("orders", TTL)
    assert "SET wait_timeout = 3" in server.sessions[0].queries


def test_a_client_believes_from_when_it_sent_the_query_after_its_grant(lock, server, world):
    server.answers_ms = 10
    grant = lock().acquire("orders", TTL)
    # SET wait_timeout and GET_LOCK were answered before that.
    assert grant.deadline == 20 * 1_000_000 + TTL
    assert world.now == 30 * 1_000_000


def test_a_lock_that_another_session_holds_is_not_granted(lock):
    lock().acquire("orders", TTL)
    with pytest.raises(Failed, match="not its turn") as error:
        lock(wait_ms=500).acquire("orders", TTL)
    assert error.value.kind == "not-granted"


def test_only_the_query_that_waits_gets_more_time(lock, server):
    one = lock(wait_ms=4000, node_timeout_ms=500)
    asked = []
    connect = server.connect

    def watched(**given):
        session = connect(**given)
        execute = session.execute
        session.execute = lambda query, values: (
            asked.append((query[:12], session._read_timeout)), execute(query, values)
        )  # fmt: skip
        return session

    mariadb.pymysql.connect = watched
    one.release(one.acquire("orders", TTL))
    assert asked == [
        ("SET wait_tim", 0.5), ("SELECT GET_L", 4.5), ("SELECT NULL", 0.5), ("SELECT RELEA", 0.5),
    ]  # fmt: skip


def test_a_released_lock_is_free(lock):
    one, two = lock(), lock()
    one.release(one.acquire("orders", TTL))
    two.acquire("orders", TTL)


def test_the_lock_goes_with_its_session_and_the_holder_learns_of_it(lock, server, world):
    one = lock()
    grant = one.acquire("orders", TTL)
    server.sessions[0].end()
    lock().acquire("orders", TTL)
    with pytest.raises(Failed, match="the connection is broken") as error:
        one.extend(grant, TTL)
    assert error.value.kind == "not-held"
    assert [said[0] for said in world.said] == ["lost"]
    with pytest.raises(Failed) as error:
        one.release(grant)
    assert error.value.kind == "not-held"


def test_after_an_error_a_client_connects_anew(lock, server):
    one = lock()
    one.acquire("orders", TTL)
    server.sessions[0].end()
    with pytest.raises(Failed):
        one.acquire("orders", TTL)
    one.acquire("orders", TTL)
    assert len(server.sessions) == 2


def test_a_session_that_was_idle_for_long_is_replaced_before_it_is_used(lock, server, world):
    one = lock()
    one.release(one.acquire("orders", TTL))
    server.sessions[0].end()
    world.now += TTL
    one.acquire("orders", TTL)
    assert len(server.sessions) == 2


def test_each_grant_draws_a_higher_token(lock):
    one = lock(token="counter")
    drawn = []
    for _ in range(3):
        grant = one.acquire("orders", TTL)
        drawn.append(grant.token)
        one.release(grant)
    assert drawn == [1, 2, 3]


def test_an_extension_is_a_query_that_resets_the_idle_time(lock, server, world):
    one = lock()
    grant = one.acquire("orders", TTL)
    world.now += 1_000_000_000
    assert one.extend(grant, TTL).deadline == world.now + TTL
    assert server.sessions[0].queries[-1] == "SELECT 1"


def test_closing_the_client_frees_its_locks(lock, server):
    one = lock()
    one.acquire("orders", TTL)
    one.close()
    assert server.holders == {}
