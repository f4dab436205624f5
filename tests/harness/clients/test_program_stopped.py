"""A program that is stopped or killed at any point loses none of its output."""

from __future__ import annotations

import select
import signal

import pytest

from tests.harness.talk import ACQUIRE, WORK

pytestmark = pytest.mark.slow


def test_at_an_armed_failpoint_it_stops_for_real_and_resumes_without_loss(talk, eventually, state):
    talk.say(control="arm", point="acquired")
    talk.say(**ACQUIRE)
    said = talk.hear_until("point")
    assert [line.get("type") for line in said] == ["invoke", "ok", None]
    assert said[-1] == {"control": "point", "point": "acquired", "process": 3}
    eventually(lambda: state(talk.program.pid) == "T")
    talk.say(f="release", value={"lock": "orders", "hold": said[1]["value"]["hold"]})
    assert not select.select([talk.program.stdout], [], [], 0.05)[0]
    talk.program.send_signal(signal.SIGCONT)
    assert [talk.hear()["type"], talk.hear()["type"]] == ["invoke", "ok"]


def test_a_point_stops_it_once(talk, eventually, state):
    talk.say(control="arm", point="acquired")
    talk.say(**ACQUIRE)
    talk.hear_until("point")
    eventually(lambda: state(talk.program.pid) == "T")
    talk.program.send_signal(signal.SIGCONT)
    talk.say(**ACQUIRE)
    assert [talk.hear()["type"], talk.hear()["type"]] == ["invoke", "ok"]


def test_a_point_arms_the_next_one_when_the_program_continues(talk, eventually, state):
    talk.say(control="arm", point="before-write", then="acquired")
    talk.say(**ACQUIRE)
    assert [talk.hear()["type"], talk.hear()["type"]] == ["invoke", "ok"]
    talk.say(f="write", value={"resource": "account", "version": 0})
    assert talk.hear_until("point")[-1]["point"] == "before-write"
    eventually(lambda: state(talk.program.pid) == "T")
    talk.program.send_signal(signal.SIGCONT)
    talk.say(**ACQUIRE)
    assert talk.hear_until("point")[-1]["point"] == "acquired"
    talk.program.send_signal(signal.SIGCONT)


def test_a_point_that_was_disarmed_arms_no_other(talk):
    talk.say(control="arm", point="before-write", then="acquired")
    talk.say(control="disarm", point="before-write")
    talk.say(f="write", value={"resource": "account", "version": 0})
    talk.say(**ACQUIRE)
    said = [talk.hear() for _ in range(4)]
    assert not any(line.get("control") for line in said)


def test_a_point_that_was_disarmed_stops_nothing(talk):
    talk.say(control="arm", point="acquired")
    talk.say(control="disarm", point="acquired")
    talk.say(**ACQUIRE)
    talk.say(**ACQUIRE)
    assert [talk.hear().get("type") for _ in range(4)] == ["invoke", "ok", "invoke", "ok"]


def test_a_write_stopped_before_it_was_sent_has_been_invoked(talk):
    talk.say(control="arm", point="before-write")
    talk.say(f="write", value={"resource": "account", "version": 0})
    assert [line.get("type") for line in talk.hear_until("point")] == ["invoke", None]


def test_a_killed_worker_has_sent_every_event_up_to_its_last_invocation(talk, eventually, state):
    talk.say(**ACQUIRE)
    talk.say(control="arm", point="before-write")
    talk.say(f="write", value={"resource": "account", "version": 0})
    said = talk.hear_until("point")
    eventually(lambda: state(talk.program.pid) == "T")
    talk.program.kill()
    talk.program.wait()
    assert talk.hear_all() == []
    assert [(line.get("f"), line.get("type")) for line in said[:3]] == [
        ("acquire", "invoke"),
        ("acquire", "ok"),
        ("write", "invoke"),
    ]


def test_a_worker_killed_at_full_speed_leaves_whole_lines_and_no_gap(talk):
    """At any moment of the kill, the open op is recorded after the completed ones."""
    talk.say(**WORK)
    said = [talk.hear() for _ in range(400)]
    talk.program.kill()
    said += talk.hear_all()
    types = [line["type"] for line in said]
    assert types == ["invoke", "ok"] * (len(said) // 2) + ["invoke"] * (len(said) % 2)
    assert [line["f"] for line in said[::2]] == [
        "acquire" if n % 2 == 0 else "release" for n in range(len(said[::2]))
    ]
    times = [line["time"] for line in said]
    assert times == sorted(times)
