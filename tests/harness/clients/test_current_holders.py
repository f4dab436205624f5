"""Current holders: grants without a release so far, as a trigger sees them."""

from __future__ import annotations

import pytest

from fencepost.harness.clients.current_holders import CurrentHolders, Held, long_held
from fencepost.harness.clients.event import Event, Value


@pytest.fixture
def heard():
    holding = CurrentHolders(lambda process: f"client-{process}")

    def hear(f, type, process=1, time=10, **value):
        holding.heard(Event(time, process, type, f, Value(lock="orders", **value)))
        return holding.unreleased

    return hear


GRANTED = Held("orders", "client-1", 10, deadline_ns=99)


def test_a_grant_is_on_from_its_answer_until_its_release_is_sent(heard):
    assert heard("acquire", "invoke") == []
    assert heard("acquire", "ok", deadline=99) == [GRANTED]
    assert heard("write", "ok") == [GRANTED]
    assert heard("release", "invoke") == []


def test_an_extension_and_a_renewal_move_its_deadline(heard):
    heard("acquire", "ok", deadline=99)
    assert heard("extend", "ok", deadline=120)[0].deadline_ns == 120
    assert heard("extend", "fail", deadline=None)[0].deadline_ns == 120
    assert heard("renewed", "info", deadline=150)[0].deadline_ns == 150


def test_a_hold_that_its_holder_gave_up_is_on_until_it_is_released(heard):
    heard("acquire", "ok", deadline=99)
    assert [one.lost for one in heard("lost", "info")] == [True]
    assert heard("release", "invoke") == []


@pytest.mark.parametrize("end", [("write", "info"), ("close", "invoke")])
def test_a_grant_ends_with_its_process(heard, end):
    heard("acquire", "ok", deadline=99)
    assert heard(*end) == []


def test_the_oldest_holder_is_first(heard):
    heard("acquire", "ok", process=2, time=30)
    heard("acquire", "ok", process=1, time=10)
    found = heard("acquire", "ok", process=3, time=20)
    assert [one.client for one in found] == ["client-1", "client-3", "client-2"]


S = 1_000_000_000


def held(client, start_s, deadline_s=None):
    deadline_ns = None if deadline_s is None else int(deadline_s * S)
    return Held("orders", client, int(start_s * S), deadline_ns=deadline_ns)


@pytest.mark.parametrize(
    ("on", "found"),
    [
        ([], None),
        ([held("client-1", 9.95)], "client-1"),
        ([held("client-1", 9.96)], None),
        ([held("client-1", 9.0, 10.05)], "client-1"),
        ([held("client-1", 9.0, 10.04)], None),
        # A grant followed by another one is only its client's belief.
        ([held("client-1", 8.0), held("client-2", 9.0)], "client-2"),
        ([held("client-1", 8.0), held("client-2", 9.99)], "client-1"),
    ],
)
def test_the_client_granted_a_lock_last_is_its_holder_until_its_hold_ends(on, found):
    assert long_held(on, 10 * S, 0.05) == found
