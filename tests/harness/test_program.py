"""A worker's program: ops in, events out; stopped or killed anywhere, it loses nothing said."""

from __future__ import annotations

import json
import select
import signal
import socket
import sys
import time

import pytest

PROGRAM = [sys.executable, "-m", "harness.worker.program"]
DEADLINE_S = 10.0


class Talk:
    """One program, spoken to line by line."""

    def __init__(self, program):
        self.program = program
        self._rest = b""

    def say(self, **message):
        self.program.stdin.write(json.dumps(message).encode() + b"\n")

    def hear(self):
        """The next line; None once there will be none."""
        end = time.monotonic() + DEADLINE_S
        while b"\n" not in self._rest:
            ready, _, _ = select.select([self.program.stdout], [], [], end - time.monotonic())
            assert ready, "the program said nothing"
            chunk = self.program.stdout.read(65536)
            if not chunk:
                assert self._rest == b"", "a torn line"
                return None
            self._rest += chunk
        line, self._rest = self._rest.split(b"\n", 1)
        return json.loads(line)

    def hear_until(self, control):
        lines = [self.hear()]
        while lines[-1].get("control") != control:
            lines.append(self.hear())
        return lines

    def hear_all(self):
        return list(iter(self.hear, None))


@pytest.fixture
def talk(spawn, setup):
    talk = Talk(spawn(PROGRAM))
    talk.say(control="setup", **setup)
    assert talk.hear() == {"control": "ready", "pid": talk.program.pid}
    return talk


ACQUIRE = {"f": "acquire", "value": {"lock": "orders", "ttl": 10**9}}


def test_an_op_is_an_invocation_and_a_completion_in_rising_time(talk, setup):
    talk.say(**ACQUIRE)
    invoke, ok = talk.hear(), talk.hear()
    assert (invoke["type"], ok["type"]) == ("invoke", "ok")
    assert invoke["value"] == ACQUIRE["value"]
    assert ok["value"]["token"] == 1
    assert 0 < invoke["time"] < ok["time"] < time.monotonic_ns() - setup["origin_ns"]
    assert invoke["time"] + 10**9 <= ok["value"]["deadline"] <= ok["time"] + 10**9
    assert {(event["process"], event["node"], event["f"]) for event in (invoke, ok)} == {
        (3, "client-1", "acquire")
    }


def test_each_grant_is_a_hold_of_its_own_that_can_be_extended_and_released_once(talk):
    talk.say(**ACQUIRE)
    talk.say(**ACQUIRE)
    holds = [talk.hear()["value"].get("hold") for _ in range(4)][1::2]
    assert len(set(holds)) == 2
    value = {"lock": "orders", "hold": holds[0]}
    talk.say(f="extend", value={**value, "ttl": 5 * 10**9})
    invoke, ok = talk.hear(), talk.hear()
    assert (ok["type"], ok["f"]) == ("ok", "extend")
    assert ok["value"]["deadline"] >= invoke["time"] + 5 * 10**9
    talk.say(f="release", value=value)
    talk.say(f="release", value=value)
    ends = [talk.hear() for _ in range(4)][1::2]
    assert [end["type"] for end in ends] == ["ok", "fail"]
    assert ends[1]["error"][0] == "not-held"


def test_a_write_that_certainly_did_not_arrive_is_a_failure_with_a_unique_value(talk):
    for _ in range(2):
        talk.say(f="write", value={"resource": "account", "version": 0})
    events = [talk.hear() for _ in range(4)]
    assert [event["type"] for event in events] == ["invoke", "fail", "invoke", "fail"]
    assert events[1]["error"][0] == "unreachable"
    assert events[0]["value"]["value"] != events[2]["value"]["value"]
    assert events[0]["process"] == events[3]["process"] == 3


def test_an_op_of_unknown_outcome_is_info_and_makes_a_successor(spawn, setup):
    """The storage takes the request, and hangs up instead of answering."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        setup["addresses"]["storage"] = server.getsockname()
        talk = Talk(spawn(PROGRAM))
        talk.say(control="setup", **setup)
        talk.hear()
        talk.say(**ACQUIRE)
        hold = [talk.hear(), talk.hear()][1]["value"]["hold"]
        talk.say(f="write", value={"resource": "account", "version": 0, "hold": hold})
        invoke = talk.hear()
        connection, _ = server.accept()
        connection.recv(65536)
        connection.close()
        info = talk.hear()
    assert (invoke["value"]["token"], info["type"], info["process"]) == (1, "info", 3)
    talk.say(f="release", value={"lock": "orders", "hold": hold})
    release = [talk.hear(), talk.hear()][1]
    assert (release["process"], release["type"]) == (8, "fail")


def test_at_an_armed_point_it_stops_for_real_and_goes_on_with_nothing_lost(talk, eventually, state):
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


def test_a_killed_worker_has_said_everything_up_to_its_last_invocation(talk, eventually, state):
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


WORK = {
    "control": "work",
    "settings": {"ttl_ns": 10**9, "write": False, "think_ms": 0, "pause_ms": 0},
    "until_ns": 10**15,
}


def test_a_worker_killed_at_full_speed_leaves_whole_lines_and_no_gap(talk):
    """Whatever moment the kill hits: what it began comes after what it had ended."""
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


def test_a_worker_that_is_told_to_rest_gives_its_hold_back_and_says_so(talk):
    talk.say(**WORK)
    heard = [talk.hear() for _ in range(10)]
    talk.say(control="rest")
    heard += talk.hear_until("idle")
    assert (heard[-2]["f"], heard[-2]["type"]) == ("release", "ok")
    talk.say(**ACQUIRE)
    assert talk.hear()["f"] == "acquire"


def test_work_ends_at_its_time(talk):
    talk.say(**{**WORK, "until_ns": 0})
    assert talk.hear() == {"control": "idle"}


def test_the_end_of_its_standard_input_ends_it(talk):
    talk.say(**ACQUIRE)
    talk.program.stdin.close()
    assert [line["type"] for line in talk.hear_all()] == ["invoke", "ok"]
    assert talk.program.wait(DEADLINE_S) == 0
