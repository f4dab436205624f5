"""The plain contract: the meaning of each answer of a user lock, and the invalid answers."""

from __future__ import annotations

import time
from dataclasses import replace
from random import Random
from types import SimpleNamespace

import pytest

from fencepost.workloads.contract.lock import BadAnswer, Failed, Indeterminate
from fencepost.workloads.locks.plain import Deadline, Grant, PlainLock

S = 10**9
ORIGIN_NS = time.monotonic_ns() - 5 * S
HELD = SimpleNamespace(name="orders", deadline=0, token=None)


def made(now=lambda: time.monotonic_ns() - ORIGIN_NS, **verbs):
    """A lock whose verbs are these functions, and that remembers the servers it was made for."""

    class Plain:
        def __init__(self, servers, **options):
            self.servers, self.options = servers, options

        def acquire(self, name, ttl):
            raise NotImplementedError

        def release(self, name):
            raise NotImplementedError

    for verb, function in verbs.items():
        setattr(Plain, verb, lambda self, *given, _function=function: _function(*given))
    env = SimpleNamespace(
        now=now,
        address={"redis-1": ("10.0.0.7", 6379)}.__getitem__,
        random=Random(1),
    )
    return PlainLock("mine.py:Plain", Plain, env, ["redis-1"], {"wait": 2})


def raising(error):
    def fail(*_):
        raise error

    return fail


def test_it_is_made_of_hosts_with_ports_and_of_its_options():
    assert (made()._lock.servers, made()._lock.options) == ([("10.0.0.7", 6379)], {"wait": 2})


def test_acquire_is_given_a_name_and_seconds():
    given = []
    with pytest.raises(Failed):
        made(acquire=lambda *words: given.append(words)).acquire("orders", 3 * S // 2)
    assert given == [("orders", 1.5)]


def test_the_wakeups_of_a_grant_are_reported_and_nonsense_is_refused():
    assert made(acquire=lambda *_: Grant(wakeups=3)).acquire("orders", S).wakeups == 3
    assert made(acquire=lambda *_: Grant()).acquire("orders", S).wakeups is None
    for nonsense in (-1, True, "once", 1.5):
        with pytest.raises(BadAnswer, match=r"answered with the wakeups .* it should be a"):
            made(acquire=lambda *_, said=nonsense: Grant(wakeups=said)).acquire("orders", S)


def test_a_client_that_gets_true_believes_for_the_ttl_from_the_call_on():
    called = []

    def acquire(*_):
        called.append(time.monotonic_ns() - ORIGIN_NS)
        return time.sleep(0.02) or True

    before = time.monotonic_ns() - ORIGIN_NS
    grant = made(acquire=acquire).acquire("orders", S)
    assert before + S <= grant.deadline <= called[0] + S
    assert (grant.name, grant.token) == ("orders", None)
    assert len(grant.secret) == 16


@pytest.mark.parametrize("answer", [False, None])
def test_false_and_none_are_certainly_not_granted(answer):
    with pytest.raises(Failed) as raised:
        made(acquire=lambda *_: answer).acquire("orders", S)
    assert type(raised.value) is Failed
    assert raised.value.kind == "not-granted"


def test_a_grant_carries_its_token_and_its_deadline():
    until = time.monotonic() + 0.75
    grant = made(acquire=lambda *_: Grant(token=7, deadline=until)).acquire("orders", S)
    assert grant.token == 7
    assert abs(grant.deadline - (until * 1e9 - ORIGIN_NS)) < 10_000


def test_a_pause_before_the_first_look_at_the_clock_moves_no_deadline(monkeypatch):
    """A hunt pauses a client as it reads the clock of its env."""
    clock = [7 * S]

    def now():
        clock[0] += S
        return clock[0] - 2 * S

    monkeypatch.setattr(time, "monotonic_ns", lambda: clock[0])
    monkeypatch.setattr(time, "monotonic", lambda: clock[0] / S)
    lock = made(now, acquire=lambda *_: Grant(deadline=9.0))
    assert lock.acquire("orders", S).deadline == 7 * S


def test_a_grant_without_a_deadline_lasts_as_requested_and_with_none_for_an_unknown_time():
    assert Grant(token=1).deadline is Deadline.AS_ASKED
    assert made(acquire=lambda *_: Grant(token=1)).acquire("o", S).deadline > 5 * S
    assert made(acquire=lambda *_: Grant(deadline=None)).acquire("o", S).deadline is None


@pytest.mark.parametrize(
    ("answer", "assumed"),
    [
        (True, True),
        (Grant(token=1), True),
        (Grant(deadline=None), False),
        (Grant(deadline=time.monotonic() + 1), False),
    ],
)
def test_a_deadline_that_the_lock_did_not_name_is_marked_as_assumed(answer, assumed):
    lock = made(acquire=lambda *_: answer, extend=lambda *_: answer)
    grant = lock.acquire("orders", S)
    assert grant.assumed is assumed
    assert lock.extend(replace(grant, assumed=not assumed), S).assumed is assumed


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (1, r"acquire answered 1 \(int\); it should be True or a fencepost.Grant \(granted\), or"),
        ("b'lock-7'", r"acquire answered \"b'lock-7'\" \(str\); it should be True"),
        (b"x" * 200, r"answered b'x{75}\.\.\. \(bytes\)"),
        (Grant(token="7"), r"with the token '7' \(str\); it should be a whole number"),
        (Grant(token=True), r"with the token True \(bool\)"),
        (Grant(token=2**63), r"with the token 9223372036854775808 \(int\)"),
        (Grant(deadline="soon"), r"with the deadline 'soon' \(str\); it should be s of time.mono"),
        (Grant(deadline=float("inf")), r"with the deadline inf \(float\)"),
        (Grant(deadline=True), r"with the deadline True \(bool\)"),
        (Grant(deadline=time.time() + 2), r"is now, and this is time.time\(\)'s"),
    ],
)
def test_an_acquire_that_answers_nonsense_is_the_client_s_mistake(answer, why):
    with pytest.raises(BadAnswer, match=why):
        made(acquire=lambda *_: answer).acquire("orders", S)


def test_failed_is_certain_and_any_other_exception_may_have_happened():
    with pytest.raises(Failed) as raised:
        made(acquire=raising(Failed("the quota is used up"))).acquire("orders", S)
    assert (raised.value.kind, raised.value.text) == ("not-granted", "the quota is used up")
    with pytest.raises(Failed) as raised:
        made(acquire=raising(Failed("no-quorum", "two of five"))).acquire("orders", S)
    assert (raised.value.kind, raised.value.text) == ("no-quorum", "two of five")
    with pytest.raises(Indeterminate) as raised:
        made(acquire=raising(ConnectionError("reset"))).acquire("orders", S)
    assert (raised.value.kind, raised.value.text) == ("raised", "ConnectionError: reset")
    with pytest.raises(Indeterminate) as raised:
        made(acquire=raising(Indeterminate())).acquire("orders", S)
    assert raised.value.kind == "not-granted"


@pytest.mark.parametrize("answer", [None, True])
def test_a_release_that_returns_is_done(answer):
    given = []
    made(release=lambda name: given.append(name) or answer).release(HELD)
    assert given == ["orders"]


def test_a_release_that_answers_false_certainly_released_nothing():
    with pytest.raises(Failed) as raised:
        made(release=lambda _: False).release(HELD)
    assert (type(raised.value), raised.value.kind) == (Failed, "not-held")
    with pytest.raises(BadAnswer, match=r"release answered 0 \(int\); it should be None or True"):
        made(release=lambda _: 0).release(HELD)
    with pytest.raises(Indeterminate):
        made(release=raising(TimeoutError())).release(HELD)


def test_an_extension_is_answered_as_a_grant_and_never_with_none():
    env_now = time.monotonic_ns() - ORIGIN_NS
    grant = made(acquire=lambda *_: Grant(token=3)).acquire("orders", S)
    extended = made(extend=lambda *_: True).extend(grant, 4 * S)
    assert (extended.token, extended.secret) == (3, grant.secret)
    assert 4 * S <= extended.deadline - env_now < 5 * S
    with pytest.raises(Failed, match="extend answered False"):
        made(extend=lambda *_: False).extend(grant, S)
    with pytest.raises(BadAnswer, match=r"extend answered None \(NoneType\).*or False \(certainly"):
        made(extend=lambda *_: None).extend(grant, S)


def test_extend_and_close_may_be_missing():
    assert made(extend=lambda *_: True).extends
    assert not made().extends
    made().close()
    closed = []
    made(close=lambda: closed.append(True)).close()
    assert closed == [True]


def test_a_successor_is_made_late_where_its_servers_are_away_and_asks_then():
    tries = []

    class Connects:
        def __init__(self, servers):
            tries.append(len(tries))
            if len(tries) < 3:
                raise ConnectionError("refused")

        def acquire(self, name, ttl):
            return True

        def extend(self, name, ttl):
            return True

        def release(self, name): ...

    env = SimpleNamespace(now=lambda: 0, address=lambda node: ("h", 1), random=Random(1))
    with pytest.raises(ConnectionError):
        PlainLock("mine", Connects, env, ["redis-1"], {})
    late = PlainLock("mine", Connects, env, ["redis-1"], {}, late=True)
    assert late.extends
    late.close()
    assert late.acquire("orders", S).name == "orders"
    tries.clear()
    never = PlainLock("mine", Connects, env, ["redis-1"], {}, late=True)
    with pytest.raises(Failed) as raised:
        never.acquire("orders", S)
    assert (type(raised.value), raised.value.kind) == (Failed, "unreachable")
    assert "mine cannot be made: ConnectionError('refused')" in raised.value.text


def test_a_mistake_in_the_code_is_no_answer_of_the_lock():
    with pytest.raises(BadAnswer, match=r"acquire raised NameError: name 'nothing' is not defined"):
        made(acquire=lambda *_: nothing).acquire("orders", S)  # noqa: F821
    with pytest.raises(
        BadAnswer, match=r"release raised NotImplementedError: , line \d+ of test_pl"
    ):
        made().release(HELD)


def test_verbs_with_other_arguments_are_a_mistake_and_an_error_within_them_is_not():
    class Other:
        def __init__(self, servers): ...
        def acquire(self, name): ...
        def release(self, name):
            return len(None)

    env = SimpleNamespace(now=lambda: 0, address=lambda node: ("h", 1), random=Random(1))
    lock = PlainLock("mine", Other, env, ["redis-1"], {})
    with pytest.raises(
        BadAnswer, match=r"acquire\(\) takes 2 positional arguments but 3 were given"
    ):
        lock.acquire("orders", S)
    with pytest.raises(Indeterminate, match="TypeError: object of type 'NoneType' has no len"):
        lock.release(HELD)


def test_a_class_without_a_verb_is_refused_when_it_is_made():
    env = SimpleNamespace(now=lambda: 0, address=lambda node: ("h", 1), random=Random(1))
    with pytest.raises(BadAnswer, match="mine has no acquire; a lock needs acquire and release"):
        PlainLock("mine", lambda servers: object(), env, ["redis-1"], {}, late=True)


def test_an_error_s_text_can_be_written_to_a_file_whatever_it_has():
    error = Failed("unreachable", "no \udcff")
    assert error.text == str(error) == "no \\udcff"
