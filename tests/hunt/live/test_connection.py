"""Messages of a real connection arrive in order, as in TCP."""

from __future__ import annotations

from types import SimpleNamespace

from fencepost.hunt.intercept.stream import Talk
from fencepost.hunt.live.connection import Way


def test_a_message_that_is_held_back_holds_back_those_behind_it():
    first, second = object(), object()
    way = Way()
    way.waiting += [first, second]
    assert way.arrive(second) == []
    assert way.arrive(first) == [first, second]


def test_a_late_copy_takes_the_place_of_its_message():
    first, second, late = object(), object(), object()
    way = Way()
    way.waiting += [first, second]
    way.replace(first, late)
    assert way.arrive(second) == []
    assert way.arrive(late) == [late, second]


def test_nothing_arrives_after_a_lost_message():
    first, second = object(), object()
    way = Way()
    way.waiting += [first, second]
    way.broken = True
    assert way.arrive(first) == []


def test_a_reply_that_is_held_back_keeps_its_answers_for_the_picture():
    request = Talk(SimpleNamespace(server=None), (("GET", "a"),), 0, 0)
    assert not hasattr(request.later(), "replies")
    request.replies, request.back = ["1"], True
    assert request.later().replies == ["1"]
