"""A session with a database: it holds locks until it ends, and its client learns that it has."""

from __future__ import annotations

import pytest

from fencepost.workloads.contract.lock import Failed
from fencepost.workloads.locks.sql_session import SqlSession

TTL = 3_000_000_000


class Gone(Exception):
    """The server has ended the session."""


class Connection:
    def __init__(self, world):
        self.world = world
        self.open = True
        self.closed = 0
        self.answers_ms = 0

    def prove(self):
        self.world.now += self.answers_ms * 1_000_000
        if not self.open:
            raise Gone("the server has gone away")

    def close(self):
        self.closed += 1
        if not self.open:
            raise Gone("it was closed already")


@pytest.fixture
def connection(world):
    return Connection(world)


@pytest.fixture
def session(world, connection):
    one = SqlSession(world.env(), "db-1", lambda given: given.prove(), (OSError, Gone), False)
    with one.answered("unreachable"):
        assert one.open(lambda: connection) is connection
    return one


def test_a_session_is_opened_once(session, connection):
    with session.answered("unreachable"):
        assert session.open(lambda: pytest.fail("it is open")) is connection


def test_a_grant_counts_from_when_its_last_answered_query_was_sent(session, world):
    world.now += 5_000_000_000
    grant = session.grant("orders", 7, world.now - 1_000_000_000, TTL)
    assert (grant.name, grant.token) == ("orders", 7)
    assert grant.deadline == world.now - 1_000_000_000 + TTL


def test_an_extension_counts_from_when_its_query_was_sent(session, connection, world):
    grant = session.grant("orders", None, world.now, TTL)
    world.now += 1_000_000_000
    sent, connection.answers_ms = world.now, 20
    assert session.extend(grant, TTL).deadline == sent + TTL


def test_a_session_without_an_answer_has_lost_its_lock_and_its_client_is_told(
    session, connection, world
):
    grant = session.grant("orders", None, world.now, TTL)
    connection.open = False
    with pytest.raises(Failed, match="the connection is broken: the server has gone") as error:
        session.extend(grant, TTL)
    assert error.value.kind == "not-held"
    assert [(said[0], said[1]) for said in world.said] == [("lost", grant.secret)]


def test_an_extension_without_an_answer_closes_the_connection(session, connection, world):
    # Its answer may come later, and would be taken for that of the next query.
    grant = session.grant("orders", None, world.now, TTL)
    connection.open = False
    with pytest.raises(Failed):
        session.extend(grant, TTL)
    assert connection.closed == 1
    with pytest.raises(Failed, match="gone with it"), session.releasing(grant):
        pytest.fail("there is no connection")


def test_an_error_closes_the_connection_and_the_next_one_is_new(session, connection, world):
    with pytest.raises(Failed, match="db-1: no route") as error, session.answered("unreachable"):
        raise OSError("no route")
    assert (error.value.kind, connection.closed) == ("unreachable", 1)
    other = Connection(world)
    with session.answered("unreachable"):
        assert session.open(lambda: other) is other


def test_a_connection_that_cannot_be_closed_is_dropped_all_the_same(session, connection):
    connection.open = False
    session.drop()
    assert connection.closed == 1
    session.drop()
    assert connection.closed == 1


def test_another_error_leaves_the_connection_open(session, connection):
    with pytest.raises(Failed, match="not its turn"), session.answered("not-granted"):
        raise Failed("not-granted", "not its turn")
    assert connection.closed == 0


def test_a_lock_whose_session_is_closed_cannot_be_released_or_extended(session, world):
    grant = session.grant("orders", None, world.now, TTL)
    session.drop()
    with pytest.raises(Failed, match="gone with it") as error, session.releasing(grant):
        pytest.fail("there is no connection")
    assert error.value.kind == "not-held"
    with pytest.raises(Failed, match="gone with it"):
        session.extend(grant, TTL)


def test_a_release_without_an_answer_closes_the_session(session, connection, world):
    grant = session.grant("orders", None, world.now, TTL)
    with pytest.raises(Failed) as error, session.releasing(grant) as given:
        connection.open = False
        given.prove()
    assert (error.value.kind, connection.closed) == ("not-held", 1)
