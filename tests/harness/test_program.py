"""A worker's program: ops in, events out; stopped or killed anywhere, it loses nothing said."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import sys
import time
from dataclasses import replace

import msgspec
import pytest

from fencepost.workloads.client import client as clients
from fencepost.workloads.client.failpoints import Failpoints
from fencepost.workloads.client.wire import Outbox, Setup
from fencepost.workloads.locks.broken import NoLock
from fencepost.workloads.locks.lock import Indeterminate
from fencepost.workloads.locks.registry import LOCKS

PROGRAM = [sys.executable, "-m", "fencepost.workloads.client.program"]
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


def test_the_connection_of_a_process_that_is_gone_is_closed_before_it_says_so(spawn, setup):
    """A Redis lock whose server sees its client hang up, while the client itself goes on."""
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


def test_the_end_of_its_standard_input_closes_it_in_the_midst_of_its_work(talk):
    """The close comes between two ops: none is left open before it."""
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


class Doubtful:
    """Its releases have an unknown outcome; `closing` is called when it is closed."""

    closing = staticmethod(lambda: None)

    def __init__(self, env, nodes, options):
        self.env = env

    def acquire(self, name, ttl_ns):
        return NoLock(self.env, token=1).acquire(name, ttl_ns)

    def release(self, grant):
        raise Indeterminate("timeout", "no reply")

    def close(self):
        self.closing()


@pytest.fixture
def client(setup, monkeypatch):
    """A client in this process, its outbox, and what it has written since this was asked last."""
    doubtful = replace(LOCKS["broken-always-yes"], make=Doubtful)
    monkeypatch.setattr(clients, "LOCKS", {doubtful.name: doubtful})
    out, into = os.pipe()
    os.set_blocking(out, False)

    def said():
        try:
            return [json.loads(line) for line in os.read(out, 65536).splitlines()]
        except BlockingIOError:
            return []

    told = msgspec.convert(setup, Setup, strict=False)
    outbox = Outbox(into, told)
    yield clients.Client(told, outbox, Failpoints(outbox)), outbox, said
    os.close(out)
    os.close(into)


def go_unknown(client, out):
    """A release of unknown outcome, which ends the process."""
    _, granted = client.apply("acquire", ACQUIRE["value"])
    assert client.apply("release", {"lock": "orders", "hold": granted["hold"]})[0] == "info"
    out.flush()


def test_a_close_is_said_before_it_begins(client, monkeypatch):
    client, out, said = client
    before = []
    monkeypatch.setattr(Doubtful, "closing", lambda self: before.extend(said()))
    go_unknown(client, out)
    assert [(op["f"], op["type"]) for op in before[-2:]] == [
        ("release", "info"),
        ("close", "invoke"),
    ]
    assert [(op["f"], op["type"], op["process"]) for op in said()] == [("close", "ok", 3)]


@pytest.mark.parametrize(
    ("raised", "error"),
    [
        (Indeterminate("timeout", "the session's end got no reply"),
         ["timeout", "the session's end got no reply"]),
        (OSError("no such socket"), ["raised", "OSError('no such socket')"]),
    ],
)  # fmt: skip
def test_a_close_that_raises_is_info_and_the_client_goes_on(client, monkeypatch, raised, error):
    client, out, said = client

    def fail(self):
        raise raised

    store_closed = []
    monkeypatch.setattr(Doubtful, "closing", fail)
    monkeypatch.setattr(client._resource, "close", lambda: store_closed.append(True))
    go_unknown(client, out)
    close = said()[-2:]
    assert [(op["f"], op["type"], op["process"]) for op in close] == [
        ("close", "invoke", 3),
        ("close", "info", 3),
    ]
    assert close[1]["error"] == error
    assert store_closed == [True]
    assert client.apply("acquire", ACQUIRE["value"])[0] == "ok"
    out.flush()
    assert {op["process"] for op in said()} == {8}


def test_what_the_old_lock_says_while_it_closes_is_still_the_old_process_and_later_nothing(
    client, monkeypatch
):
    client, out, said = client
    secrets, envs = [], []

    def acquire(self, name, ttl_ns):
        grant = NoLock(self.env, token=1).acquire(name, ttl_ns)
        secrets.append(grant.secret)
        envs.append(self.env)
        return grant

    def tell(self):
        self.env.lost(secrets[0], "the session is closed")

    monkeypatch.setattr(Doubtful, "acquire", acquire)
    monkeypatch.setattr(Doubtful, "closing", tell)
    _, granted = client.apply("acquire", ACQUIRE["value"])
    client.apply("acquire", ACQUIRE["value"])
    go_unknown(client, out)
    envs[0].lost(secrets[1], "too late")
    envs[0].renewed(secrets[1], 10**18)
    out.flush()
    lost = [op for op in said() if op["f"] in ("lost", "renewed")]
    assert [(op["process"], op["value"]["hold"]) for op in lost] == [(3, granted["hold"])]


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
