"""The online checker, event by event: its state, its errors, and that its verdict stays."""

import time

import pytest

from fencepost.checker.lincheck import BadHistory, Online, named


def event(process, kind, f, value=None, **more):
    return {"process": process, "type": kind, "f": f, "value": value, **more}


def fed(online, *events):
    return [online.feed(one) for one in events]


def refused(online, one):
    with pytest.raises(BadHistory) as caught:
        online.feed(one)
    return caught.value.line, caught.value.reason


def stale(online):
    return fed(
        online,
        event(0, "invoke", "write", 1),
        event(0, "ok", "write", 1),
        event(1, "invoke", "read"),
        event(1, "ok", "read", 0),
    )


def test_false_comes_with_the_event_and_stays():
    online = Online("register", init=0)
    assert (online.valid, online.reason) == (True, None)
    assert stale(online) == [True, True, True, False]
    assert (online.valid, online.fed) == (False, 4)
    assert online.reason == "event 4 cannot be placed"
    assert online.feed(event(2, "invoke", "write", 7)) is False
    assert online.fed == 5
    assert online.feed({"nothing": "of an event"}) is False


def test_a_model_may_be_given_by_its_name_with_its_start_and_the_meaning_of_failed_releases():
    assert stale(Online("register", init=0))[-1] is False
    grants = [event(1, kind, "acquire") for kind in ("invoke", "ok")]
    released = [event(0, "invoke", "acquire"), event(0, "ok", "acquire"),
                event(0, "invoke", "release"), event(0, "fail", "release")]  # fmt: skip
    assert fed(Online("mutex"), *released, *grants)[-1] is False
    assert fed(Online("mutex", failed_release="ended"), *released, *grants)[-1] is True
    assert fed(Online("mutex", init=True), *grants)[-1] is False
    assert fed(Online(named("mutex")), *grants)[-1] is True


def test_an_unknown_result_of_an_open_op_may_still_be_true():
    online = Online("register", init=0)
    events = [
        event(0, "invoke", "write", 1),
        event(1, "invoke", "read"),
        event(1, "ok", "read", 1),  # so the write has happened
        event(2, "invoke", "read"),
        event(0, "fail", "write", 1),  # and now it has not
    ]
    assert fed(online, *events) == [True] * 4 + [False]


def test_an_op_that_ended_info_may_have_happened_at_any_later_time():
    online = Online("register", init=0)
    events = [event(0, "invoke", "write", 1), event(0, "info", "write", 1)]
    for value in (0, 1):
        events += [event(1, "invoke", "read"), event(1, "ok", "read", value)]
    events += [event(1, "invoke", "read"), event(1, "ok", "read", 0)]
    assert fed(online, *events) == [True] * 7 + [False]


def test_each_object_is_its_own():
    online = Online("kv")
    events = [
        event(0, "invoke", "put", ["a", "x"]), event(0, "ok", "put", ["a", "x"]),
        event(0, "invoke", "get", "b"), event(0, "ok", "get", ["b", ""]),
        event(0, "invoke", "get", "a"), event(0, "ok", "get", ["a", ""]),
    ]  # fmt: skip
    assert fed(online, *events) == [True] * 5 + [False]


def test_the_nemesis_and_ops_of_another_kind_are_passed_over():
    online = Online("register", init=0)
    assert online.feed(event("nemesis", "info", "kill")) is True
    assert fed(online, event(0, "invoke", "acquire"), event(0, "ok", "acquire")) == [True, True]
    assert stale(online)[-1] is False


def test_an_op_of_another_kind_may_have_any_value():
    online = Online("mutex")
    written = [event(0, kind, "write", [1, 2]) for kind in ("invoke", "ok")]
    assert fed(online, *written) == [True, True]


def test_notices_of_a_client_leave_its_open_op_open():
    online = Online("mutex")
    events = [
        event(0, "info", "lost", {"hold": 1}), event(0, "invoke", "acquire"),
        event(0, "info", "renewed", {"hold": 1}), event(0, "ok", "acquire"),
        event(1, "invoke", "acquire"), event(1, "ok", "acquire"),
    ]  # fmt: skip
    assert fed(online, *events) == [True] * 5 + [False]


def test_events_that_are_no_history_are_refused_with_the_event_s_number():
    def after(*events):
        online = Online("register")
        fed(online, *events)
        return online

    opened = event(0, "invoke", "write", 1)
    assert refused(after(opened), opened) == (
        2, "process 0 invokes write, and its write of line 1 is still open",
    )  # fmt: skip
    assert refused(after(), event(0, "ok", "write")) == (
        1, "process 0 completes write, which it never invoked",
    )  # fmt: skip
    assert refused(after(opened), event(0, "ok", "read")) == (
        2, "process 0 completes read, but line 1 invoked write",
    )  # fmt: skip
    assert refused(after(opened), event(1, "invoke", "add", 1)) == (
        2, "register knows read, write, not 'add'",
    )  # fmt: skip
    assert refused(after(), 3) == (1, "an event must be a mapping, this is 3")
    assert refused(after(), {"type": "ok", "f": "read"}) == (1, "the event has no process")
    assert refused(after(), event([1], "ok", "read"))[1].startswith("process must be")
    moved = {"resource": "a", "value": 1}
    assert refused(after(event(0, "invoke", "read")), event(0, "ok", "read", moved)) == (
        2, "read did not name its object at its invocation",
    )  # fmt: skip


def test_an_op_is_open_until_it_completes_and_then_another_may_come():
    online = Online("register", init=0)
    for _ in range(3):
        assert fed(online, event(0, "invoke", "write", 1), event(0, "ok", "write", 1))[-1] is True


def test_a_limit_makes_it_unknown_for_good(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    online = Online("register", init=0, time_limit=5)
    now[0] = 106.0
    write = (event(0, "invoke", "write", 1), event(0, "ok", "write", 1))
    assert fed(online, *write * 31) == [True] * 62
    assert online.feed(write[0]) is True
    assert online.feed(write[1]) == "unknown"
    assert online.valid == "unknown"
    assert online.reason == "time limit of 5 s reached after 64 events"
    assert stale(online)[-1] == "unknown"


def test_a_limit_is_kept_within_the_search_for_one_event_too(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    online = Online("fifo-queue", time_limit=5)
    for process in range(7):
        online.feed(event(process, "invoke", "enqueue", process))
    now[0] = 106.0
    assert online.feed(event(0, "ok", "enqueue", 0)) == "unknown"
    assert "configurations at one return" in online.reason


def test_a_limit_of_memory_is_kept_too(monkeypatch):
    held = [5_000_000]
    monkeypatch.setattr("fencepost.checker.lincheck.budget.resident", lambda: held[0])
    online = Online("register", memory_limit=1)
    held[0] = 7_000_000
    write = (event(0, "invoke", "write", 1), event(0, "ok", "write", 1))
    assert fed(online, *write * 32)[-1] == "unknown"
    assert online.reason.startswith("memory limit of 1 MB")


def test_only_events_since_the_oldest_open_op_are_kept():
    online = Online("register", init=0)

    def kept():
        [only] = online._objects.values()
        return len(only.events)

    fed(online, event(0, "invoke", "write", 1))
    for _ in range(5):
        fed(online, event(1, "invoke", "write", 2), event(1, "ok", "write", 2))
    assert kept() == 11
    fed(online, event(2, "invoke", "write", 3), event(0, "ok", "write", 1))
    assert kept() == 2
    fed(online, event(2, "info", "write", 3))
    assert kept() == 0


def test_events_of_an_op_that_was_searched_again_are_kept_no_longer():
    online = Online("register", init=0)
    written = [event(1, kind, "write", 2) for kind in ("invoke", "ok")]
    fed(online, event(0, "invoke", "read"), *written, event(2, "invoke", "write", 3))
    assert online.feed(event(0, "ok", "read", 2)) is True
    [only] = online._objects.values()
    assert [one.kind for one in only.events] == ["invoke", "ok"]


def test_a_verdict_frees_the_search_state():
    online = Online("register", init=0)
    assert stale(online)[-1] is False
    assert online._objects == {}


def test_a_lease_ends_by_the_time_of_the_events():
    grant = {"ttl": 10}

    def second_grant_at(ns):
        online = Online("lease-mutex")
        return fed(
            online,
            event(0, "invoke", "acquire", grant, time=0),
            event(0, "ok", "acquire", {}, time=1),
            event(1, "invoke", "acquire", grant, time=2),
            event(1, "ok", "acquire", {}, time=ns),
        )[-1]

    assert [second_grant_at(ns) for ns in (9, 10, 11)] == [False, True, True]
