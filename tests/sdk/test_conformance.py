"""Every SDK turns a lock into a client that conforms to docs/protocol.md."""

from __future__ import annotations

import itertools
import signal
import socket
import threading
import time
from pathlib import Path

import pytest
import redis

pytestmark = pytest.mark.slow

RESOURCES = (f"account-{number}" for number in itertools.count())


def short(lines):
    return [(line["process"], line["f"], line["type"]) for line in lines]


def now(program):
    return time.monotonic_ns() - program.setup["origin_ns"]


def test_it_reports_that_it_is_ready_and_its_protocol(program):
    assert program.ready == {
        "control": "ready",
        "version": 1,
        "pid": program.program.pid,
        "generates": False,
        "extends": True,
        "promises": ["fifo", "one_wakeup"],
    }


def test_a_reset_closes_the_lock_and_makes_the_next_one(program):
    hold = program.hold()
    program.say(control="reset", **program.setup | {"versions": [1, 2], "process": 4, "stride": 7})
    assert short([program.hear(), program.hear()]) == [
        (3, "close", "invoke"),
        (3, "close", "ok"),
    ]
    ready = program.hear()
    assert (ready["control"], ready["version"]) == ("ready", 2)
    assert program.op("release", lock="orders", hold=hold)["error"][0] == "not-held"
    assert program.hold().startswith("4-")


def test_prints_of_a_lock_go_to_standard_error(program):
    program.end()
    said = program.program.stderr.read().decode()
    assert "127.0.0.1" in said and "7/3" in said and "closed" in said


def test_an_op_is_an_invocation_and_a_completion_in_time_and_at_the_end_it_closes(program):
    before = now(program)
    program.say(f="acquire", value={"lock": "orders", "ttl": 10**9})
    invoke, ok = program.hear_events()
    assert {name: invoke[name] for name in ("process", "type", "f", "node", "value")} == {
        "process": 3,
        "type": "invoke",
        "f": "acquire",
        "node": "client-1",
        "value": {"lock": "orders", "ttl": 10**9},
    }
    assert before < invoke["time"] < ok["time"] < now(program)
    hold = ok["value"]["hold"]
    assert ok["value"] == invoke["value"] | {
        "token": None,
        "deadline": ok["value"]["deadline"],
        "assumed": True,
        "hold": hold,
    }
    assert program.op("release", lock="orders", hold=hold)["type"] == "ok"
    assert short(program.end()) == [(3, "close", "invoke"), (3, "close", "ok")]
    assert program.program.wait(120) == 0


def test_names_of_any_characters_come_back_unchanged(program):
    name = 'a "name" \\ with\ttabs,\nlines, \x01, é, \u2028 and \U0001f600'
    done = program.acquire(name)
    assert (done["type"], done["value"]["lock"]) == ("ok", name)


def test_a_deadline_is_a_time_of_the_test(program):
    """As requested, by the monotonic clock, by the wall clock where the language has both."""
    for lock, left_s in (("orders", 1.0), ("short", 0.5), ("over", -1.0)):
        program.say(f="acquire", value={"lock": lock, "ttl": 10**9})
        invoke, ok = program.hear_events()
        granted_s = ok["value"]["deadline"] / 1e9 - left_s
        # Time between two readings of a clock makes no deadline later.
        assert invoke["time"] / 1e9 - 0.5 < granted_s < ok["time"] / 1e9 + 0.01


def test_a_deadline_that_the_lock_did_not_name_is_marked_as_assumed(program):
    """Both in a plain yes and in a grant with details."""
    for lock, assumed in (("orders", True), ("woken", True), ("short", False), ("endless", False)):
        assert program.acquire(lock)["value"].get("assumed", False) is assumed
    hold = program.hold()
    assert program.op("extend", lock="orders", hold=hold, ttl=10**9)["value"]["assumed"] is True


def test_a_token_of_64_bits_and_no_deadline_are_reported_unchanged(program):
    assert program.acquire("token")["value"]["token"] == 2**60 + 1
    assert program.acquire("endless")["value"]["deadline"] is None


def test_the_wakeups_of_a_grant_are_reported_if_the_lock_counts_them(program):
    assert program.acquire("woken")["value"]["wakeups"] == 2
    assert "wakeups" not in program.acquire("orders")["value"]


def test_an_op_that_certainly_did_not_happen_fails_and_the_process_continues(program):
    for lock, kind, text in (
        ("no", "not-granted", "the lock said no"),
        ("nothing", "not-granted", "the lock said no"),
        ("failed", "not-granted", "somebody else has it"),
        ("no-quorum", "no-quorum", "two of five"),
    ):
        done = program.acquire(lock)
        assert (done["type"], done["error"]) == ("fail", [kind, text])
    assert program.acquire()["process"] == 3


def test_an_op_that_may_have_happened_ends_the_process_and_a_successor_continues(program):
    process = 3
    for lock, kind, text in (("timeout", "timeout", "no reply"), ("raises", "raised", "what now")):
        done = program.acquire(lock)
        assert (done["type"], done["error"][0]) == ("info", kind)
        assert text in done["error"][1]
        program.say(f="acquire", value={"lock": "orders", "ttl": 10**9})
        assert short(program.hear_events()) == [
            (process, "close", "invoke"),
            (process, "close", "ok"),
            (process + 5, "acquire", "invoke"),
            (process + 5, "acquire", "ok"),
        ]
        process += 5
    assert short(program.end()) == [(process, "close", "invoke"), (process, "close", "ok")]


def test_a_close_that_raises_is_reported_and_a_successor_continues_all_the_same(start):
    program = start(options={"close": "raises"})
    program.hear()
    assert program.acquire("raises")["type"] == "info"
    closed = [program.hear(), program.hear()]
    assert short(closed) == [(3, "close", "invoke"), (3, "close", "info")]
    assert closed[1]["error"][0] == "raised" and "no such socket" in closed[1]["error"][1]
    assert program.acquire()["process"] == 8


def test_outcomes_of_extends_and_releases_follow_the_lock_s_answers(program):
    hold = program.hold()
    extended = program.op("extend", lock="orders", hold=hold, ttl=5 * 10**9)
    assert 2 * 10**9 < extended["value"]["deadline"] - now(program) < 5 * 10**9
    other = program.hold("not-extended")
    refused = program.op("extend", lock="not-extended", hold=other, ttl=10**9)
    assert (refused["type"], refused["error"][0]) == ("fail", "not-held")
    unknown = program.op("release", lock="orders", hold="3-99")
    assert (unknown["type"], unknown["error"][0]) == ("fail", "not-held")
    third = program.hold("not-released")
    kept = program.op("release", lock="not-released", hold=third)
    assert (kept["type"], kept["error"]) == ("fail", ["not-held", "the lock said no"])
    fourth = program.hold("release-raises")
    assert program.op("release", lock="release-raises", hold=fourth)["type"] == "info"


def test_a_register_is_read_and_written_with_the_guard_s_script(start):
    program, resource = start(guard="fenced"), next(RESOURCES)
    program.hear()
    hold = program.hold("token")
    read = program.op("read", resource=resource, hold=hold)
    assert (read["value"]["value"], read["value"]["version"]) == (None, 0)
    written = program.op("write", resource=resource, hold=hold, version=0)
    assert written["value"] == {
        "resource": resource,
        "hold": hold,
        "version": 0,
        "value": "client-1.3.2",
        "token": 2**60 + 1,
        "stored": 1,
    }
    again = program.op("read", resource=resource, hold=hold)["value"]
    assert (again["value"], again["version"]) == ("client-1.3.2", 1)


def test_a_refusal_by_a_guard_is_certain(start):
    program, resource = start(guard="compare-and-set"), next(RESOURCES)
    program.hear()
    hold = program.hold()
    assert program.op("write", resource=resource, hold=hold, version=0)["type"] == "ok"
    refused = program.op("write", resource=resource, hold=hold, version=0)
    assert (refused["type"], refused["error"][0]) == ("fail", "refused")
    assert "1" in refused["error"][1]


def test_the_only_resource_of_a_test_lies_where_that_of_any_other_client_does(program, store):
    hold = program.hold()
    program.op("write", resource="account", hold=hold, version=0)
    with redis.Redis(port=store, decode_responses=True, protocol=2) as client:
        assert client.hget("resource:register", "value") == "client-1.3.2"


def test_with_the_guard_deadline_the_client_looks_at_its_clock_before_it_writes(start):
    program = start(guard="deadline")
    program.hear()
    for lock, type in (("orders", "ok"), ("over", "fail"), ("lost-at-once", "fail")):
        done = program.op("write", resource=next(RESOURCES), hold=program.hold(lock), version=0)
        assert (done["f"], done["type"]) == ("write", type)


def at(port):
    return {"redis-1": ["127.0.0.1", 1], "storage": ["127.0.0.1", port]}


def test_a_write_to_an_unreachable_store_certainly_failed(start):
    program = start(addresses=at(1))
    program.hear()
    for f in ("read", "write"):
        done = program.op(f, resource="account", hold=program.hold(), version=0)
        assert (done["type"], done["error"][0]) == ("fail", "unreachable")


def test_a_write_to_a_store_without_a_reply_has_an_unknown_outcome(start):
    def serve():
        for _ in range(2):
            connection, _ = listener.accept()
            connection.recv(1 << 16)
            connection.close()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=serve, daemon=True).start()
        program = start(addresses=at(listener.getsockname()[1]))
        program.hear()
        value = {"resource": "account", "hold": program.hold(), "version": 0}
        read, written = program.op("read", **value), program.op("write", **value)
    assert (read["type"], read["error"][0]) == ("fail", "timeout")
    assert (written["type"], written["error"][0]) == ("info", "timeout")


def test_a_lock_s_own_event_about_a_hold_follows_its_grant(program):
    program.say(f="acquire", value={"lock": "lost-at-once", "ttl": 10**9})
    lines = [program.hear(), program.hear(), program.hear()]
    assert short(lines) == [(3, "acquire", "invoke"), (3, "acquire", "ok"), (3, "lost", "info")]
    assert lines[2]["value"] == {"lock": "lost-at-once", "hold": lines[1]["value"]["hold"]}
    assert lines[2]["error"] == ["lost", "its session ended"]


def test_a_renewal_and_a_loss_are_reported_in_order(program):
    hold = program.hold("renewed")
    program.say(f="extend", value={"lock": "renewed", "hold": hold, "ttl": 10**9})
    lines = [program.hear() for _ in range(4)]
    assert [line["f"] for line in lines] == ["extend", "renewed", "lost", "extend"]
    assert 10**9 < lines[1]["value"]["deadline"] - now(program) < 3 * 10**9


def test_a_lock_that_cannot_be_made_yet_is_made_when_it_is_asked_for(start):
    program = start(options={"mute": True}, process=8)
    assert program.hear()["control"] == "ready"
    done = program.acquire()
    assert (done["type"], done["error"][0]) == ("fail", "unreachable")
    assert "no server answers" in done["error"][1]
    assert short(program.end()) == [(8, "close", "invoke"), (8, "close", "ok")]


def broken(program):
    """Return its reason for calling itself wrong."""
    (line,) = [line for line in program.hear_all() if "control" in line]
    assert program.program.wait(120) == 1
    assert line["control"] == "broken"
    return line["why"]


def test_a_lock_that_cannot_be_made_at_the_test_s_start_is_a_mistake(start):
    why = broken(start(options={"mute": True}))
    assert why.startswith("the lock cannot be made: ") and "no server answers" in why


@pytest.mark.parametrize("guard", ["fenced", "fenced-version"])
def test_a_grant_without_the_token_that_the_guard_needs_is_a_mistake(start, guard):
    program = start(guard=guard)
    program.hear()
    program.say(f="acquire", value={"lock": "orders", "ttl": 10**9})
    why = broken(program)
    assert "ithout a" in why and why.endswith(f", which guard {guard} needs")


def test_an_answer_without_a_meaning_is_a_mistake(program, built):
    if built.typed:
        pytest.skip("its compiler refuses such an answer")
    program.say(f="acquire", value={"lock": "nonsense", "ttl": 10**9})
    assert broken(program).startswith("acquire answered ")


def test_at_an_armed_failpoint_it_reports_it_and_stops_itself_once(program):
    program.say(control="arm", point="acquired")
    program.say(control="arm", point="before-write")
    program.say(control="disarm", point="before-write")
    program.say(f="acquire", value={"lock": "orders", "ttl": 10**9})
    lines = [program.hear() for _ in range(3)]
    assert lines[2] == {"control": "point", "point": "acquired"}
    stat = Path(f"/proc/{program.program.pid}/stat")
    end = time.monotonic() + 120
    while stat.read_text().rpartition(")")[2].split()[0] != "T":
        assert time.monotonic() < end, "it did not stop"
    program.program.send_signal(signal.SIGCONT)
    hold = lines[1]["value"]["hold"]
    assert program.op("write", resource="account", hold=hold, version=0)["type"] == "ok"
    assert program.acquire()["type"] == "ok"


def test_it_shows_its_wall_clock_in_bounds(program):
    program.say(control="clock")
    shown = program.hear()
    ahead_ns = time.time_ns() - time.monotonic_ns()
    assert list(shown) == ["control", *sorted(shown, key=lambda name: name != "control")[1:]]
    assert shown["low_ns"] - 10**9 < ahead_ns < shown["high_ns"] + 10**9
    assert 0 <= shown["high_ns"] - shown["low_ns"] < 10**9


def test_a_program_whose_input_ends_at_once_ends(start):
    program = start(told=False)
    assert program.end() == []
    assert program.program.wait(120) == 0
