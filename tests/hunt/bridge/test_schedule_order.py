"""Events of a simulated run keep their order on real servers if a good part of a lease is between
them."""

from __future__ import annotations

from fencepost.hunt.bridge.records import Event, Op
from fencepost.hunt.bridge.schedule_order import reorder, segments

GAP_NS = 250


def events():
    """Return those of a client whose acquire lasts for 2.2 s, and of one that asks all the time."""
    slow, busy = Op("client-1", "acquire", "ok"), Op("client-2", "acquire", "fail")
    made = [Event("begin", 1, 0, "client-1", slow), Event("begin", 2, 1, "client-2", busy)]
    made += [Event("send", at, at, "client-2", busy) for at in range(100, 2100, 100)]
    made += [Event("end", 2090, 2090, "client-2", busy)]
    return [*made, Event("end", 2200, 2200, "client-1", slow)]


def test_a_client_that_asks_all_the_time_leaves_no_gap():
    assert len(segments(events(), GAP_NS)) == 1


def test_an_op_that_lasts_for_most_of_a_lease_ends_after_what_happened_meanwhile():
    (segment,) = segments(events(), GAP_NS)
    made = reorder(segment, GAP_NS)
    end = next(
        place for place, one in enumerate(made) if (one.client, one.what) == ("client-1", "end")
    )
    before = [one for one in made[:end] if one.client == "client-2"]
    assert {one.time_ns for one in before} >= set(range(100, 1951, 100))


def test_events_near_each_other_may_change_places():
    first, second = Op("client-1", "acquire", "ok"), Op("client-2", "acquire", "ok")
    found = [
        Event("begin", 1, 0, "client-1", first), Event("begin", 2, 1, "client-2", second),
        Event("end", 3, 2, "client-1", first), Event("end", 4, 3, "client-2", second),
    ]  # fmt: skip
    assert [one.client for one in reorder(found, GAP_NS)] == [
        "client-1", "client-1", "client-2", "client-2",
    ]  # fmt: skip
