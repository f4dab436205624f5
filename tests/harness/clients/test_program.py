"""A worker's program: ops in, events out; it completes its open op, and closes at the end."""

from __future__ import annotations

import socket
import time

import pytest

from fencepost.workloads.locks.registry import LOCKS
from tests.harness.talk import ACQUIRE, DEADLINE_S, PROGRAM, WORK, Talk

pytestmark = pytest.mark.slow


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
    """The storage takes the request, and closes the connection instead of answering."""
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
        close = talk.hear(), talk.hear()
    assert (invoke["value"]["token"], info["type"], info["process"]) == (1, "info", 3)
    assert [(op["f"], op["type"], op["process"], op["value"]) for op in close] == [
        ("close", "invoke", 3, {}),
        ("close", "ok", 3, {}),
    ]
    assert info["time"] <= close[0]["time"] <= close[1]["time"]
    talk.say(f="release", value={"lock": "orders", "hold": hold})
    release = [talk.hear(), talk.hear()][1]
    assert (release["process"], release["type"]) == (8, "fail")
    assert close[1]["time"] <= release["time"]
    talk.program.stdin.close()
    at_the_end = talk.hear_all()
    assert [(op["f"], op["type"], op["process"]) for op in at_the_end] == [
        ("close", "invoke", 8),
        ("close", "ok", 8),
    ]


def test_the_connection_of_a_dead_process_is_closed_before_it_reports_that(spawn, setup):
    """A Redis lock whose server loses its client's connection, while the client continues."""
    with (
        socket.create_server(("127.0.0.1", 0)) as redis,
        socket.create_server(("127.0.0.1", 0)) as storage,
    ):
        redis.settimeout(DEADLINE_S)
        addresses = {"redis-1": redis.getsockname(), "storage": storage.getsockname()}
        options = LOCKS["redis"].read_options({"retries": "0", "node_timeout_ms": "5000"})
        talk = Talk(spawn(PROGRAM))
        talk.say(
            control="setup", **setup | {"lock": "redis", "options": options, "addresses": addresses}
        )
        talk.hear()
        talk.say(**ACQUIRE)
        talk.hear()
        lock, _ = redis.accept()
        lock.settimeout(DEADLINE_S)
        assert b"SET" in lock.recv(65536)
        lock.send(b"+OK\r\n")
        assert talk.hear()["type"] == "ok"
        talk.say(f="write", value={"resource": "account", "version": 0})
        talk.hear()
        storage.accept()[0].close()
        assert [talk.hear()["type"] for _ in range(3)] == ["info", "invoke", "ok"]
        assert lock.recv(1) == b""
        lock.close()


def test_a_worker_that_is_stopped_releases_its_hold_and_reports_it(talk):
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


def test_the_end_of_its_standard_input_closes_and_ends_it(talk):
    talk.say(**ACQUIRE)
    talk.program.stdin.close()
    assert [(line["f"], line["type"], line["process"]) for line in talk.hear_all()] == [
        ("acquire", "invoke", 3),
        ("acquire", "ok", 3),
        ("close", "invoke", 3),
        ("close", "ok", 3),
    ]
    assert talk.program.wait(DEADLINE_S) == 0


def test_the_end_of_its_standard_input_closes_it_during_its_work(talk):
    """The close comes between two ops: no op is open before it."""
    talk.say(**WORK)
    heard = [talk.hear() for _ in range(10)]
    talk.program.stdin.close()
    heard += talk.hear_all()
    assert [line["type"] for line in heard] == ["invoke", "ok"] * (len(heard) // 2)
    assert [line["f"] for line in heard[-2:]] == ["close", "close"]
    assert talk.program.wait(DEADLINE_S) == 0


def test_a_program_whose_standard_input_ends_before_its_setup_says_nothing(spawn):
    talk = Talk(spawn(PROGRAM))
    talk.program.stdin.close()
    assert talk.hear_all() == []
    assert talk.program.wait(DEADLINE_S) == 0


@pytest.mark.parametrize(
    ("resource", "key"),
    [("account", b"resource:register"), ("account-2", b"resource:account-2")],
)
def test_a_resource_is_read_from_the_register_of_its_name(spawn, setup, resource, key):
    with socket.create_server(("127.0.0.1", 0)) as server:
        setup["addresses"]["storage"] = server.getsockname()
        talk = Talk(spawn(PROGRAM))
        talk.say(control="setup", **setup)
        talk.hear()
        talk.say(f="read", value={"resource": resource})
        connection, _ = server.accept()
        with connection:
            asked = connection.recv(65536)
            connection.sendall(b"*2\r\n$1\r\nx\r\n$1\r\n4\r\n")
            ok = [talk.hear(), talk.hear()][1]
    assert key in asked.split()
    assert (ok["value"]["value"], ok["value"]["version"]) == ("x", 4)
