"""Client events are parsed and recorded; other lines of a client's output are rejected."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from random import Random

import pytest

from fencepost.checker.history import history
from fencepost.harness.clients import rejected
from fencepost.harness.clients.client_events import ClientEvents
from fencepost.harness.clients.recorder import Recorder
from fencepost.harness.clients.rejected import RejectedLines
from fencepost.harness.lines import Lines, TooLong

NOW = 10**12


@pytest.fixture
def hearing(tmp_path):
    return ClientEvents("client-1", 3, 5, lambda: NOW, RejectedLines(tmp_path))


def row(type="invoke", f="acquire", process=3, time=1, **more):
    return {"time": time, "process": process, "type": type, "f": f, "value": {}} | more


def line(*given, **more):
    return json.dumps(row(*given, **more)).encode()


def heard(hearing, *given):
    return [(e.process, e.f, e.type) for e in hearing.take(given).events]


BEGUN, DONE = (3, "acquire", "invoke"), (3, "acquire", "ok")
HARMLESS = {
    "an empty line": b"",
    "white space": b"  \t",
    "a warning": b"worker.py:7: DeprecationWarning: use something else",
    "what is not UTF-8": b"caf\xe9",
    "a number": b"17",
}
DOUBTFUL = {
    "a torn event": line("ok")[:-9],
    "a torn answer": b'{"control":"rea',
    "an unknown answer": b'{"control":"hello"}',
    "an answer of the wrong type": b'{"control":"ready","pid":"17"}',
    "an answer with a number of a hundred digits": b'{"control":"cut","bytes":' + b"9" * 100 + b"}",
    "two events": line("ok") + line("ok"),
    "two events and a comma": line("ok") + b"," + line("ok"),
    "a list of events": b"[" + line("ok") + b"]",
    "what is not UTF-8 in an event": line("ok", node="#").replace(b"#", b"\xff"),
    "a process that is text": line("ok", process="3"),
    "a process that is a fraction": line("ok", process=3.5),
    "the nemesis": line("ok", process="nemesis"),
    "another client's process": line("ok", process=4),
    "a process before its first": line("ok", process=-2),
    "an unknown type": line("done"),
    "no type": json.dumps({"time": 1, "process": 3, "f": "acquire"}).encode(),
    "a time that is true": line("ok", time=True),
    "a time that is a fraction": line("ok", time=1.5),
    "a time that has not come": line("ok", time=NOW + 10**12),
    "a time before its own last": line("ok", time=0),
    "a time of a hundred digits": line("ok", time=0).replace(b": 0,", b": " + b"9" * 100 + b","),
    "an f that is a number": line("ok", f=7),
    "a value that is a list": line("ok", value=[1]),
    "a lock that is a list": line("ok", value={"lock": ["orders"]}),
    "a ttl that is text": line("ok", value={"ttl": "1s"}),
    "a token that is text": line("ok", value={"token": "7"}),
    "a deadline that is no number": line("ok", value={"deadline": float("nan")}),
    "a deadline without end": line("ok", value={"deadline": float("inf")}),
    "a version of half a megabyte": line("ok", value={"version": 0}).replace(
        b'"version": 0', b'"version": ' + b"1" * 500_000
    ),
    "an error that is text": line("fail", error="no"),
    "an empty error": line("fail", error=[]),
    "an error without a kind": line("fail", error=[["kind"], "text"]),
    "an index": line("ok", index=0),
    "the end of another op": line("ok", f="release"),
    "news that is an invocation": line("invoke", f="lost"),
    "a thousand brackets": line("ok", value={"value": 0}).replace(
        b'"value": 0', b'"value": ' + b"[" * 1000 + b"]" * 1000
    ),
}


@pytest.mark.parametrize(
    "bad", [*HARMLESS.values(), *DOUBTFUL.values()], ids=[*HARMLESS, *DOUBTFUL]
)
def test_a_line_that_is_no_event_is_rejected_and_later_events_are_recorded(hearing, tmp_path, bad):
    assert heard(hearing, line(time=1), bad, line("ok", time=2)) == [BEGUN, DONE]
    lost, harmless = rejected.read_rejected(tmp_path)
    assert (bool(lost), bool(harmless)) == (
        (True, False) if bad in DOUBTFUL.values() else (False, True)
    )
    (said,) = lost or harmless
    assert said.startswith("client-1 wrote a line that is no event (")


AT_ONCE = """
import sys, threading
from fencepost.harness.clients.event import decode
sys.setswitchinterval(1e-6)
barrier = threading.Barrier(8)
def hear():
    barrier.wait()
    decode(sys.argv[1].encode())
threads = [threading.Thread(target=hear) for _ in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""


def test_clients_may_send_their_first_events_concurrently():
    """SIGSEGV ended one process in six when the events' type was not known before."""
    path = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    said = line("ok", value={"lock": "orders", "ttl": 1}).decode()
    command = [sys.executable, "-c", AT_ONCE, said]
    programs = [subprocess.Popen(command, env=path) for _ in range(8)]
    assert [program.wait() for program in programs] == [0] * 8


def test_a_note_shows_the_beginning_of_the_line_and_why_it_is_none(hearing, tmp_path):
    hearing.take([line("done", node="x" * 5000)])
    (said,), _ = rejected.read_rejected(tmp_path)
    assert "(Invalid enum value 'done' - at `$.type`)" in said
    assert '{"time": 1, "process": 3, "type": "done"' in said
    assert len(said) < 500


def test_an_end_of_line_of_another_system_is_no_part_of_an_event(hearing):
    found = hearing.take([line() + b"\r"])
    assert found.lines == [line()]


def test_every_answer_of_the_protocol_is_recorded(hearing):
    answers = [
        b'{"control":"ready","pid":17,"generates":false}',
        b'{"control":"point","point":"acquired","process":3}',
        b'{"control":"clock","low_ns":1,"high_ns":2}',
        b'{"control":"idle"}',
        b'{"control":"cut","bytes":9}',
    ]
    names = [type(one).__struct_config__.tag for one in hearing.take(answers).answers]
    assert names == ["ready", "point", "clock", "idle", "cut"]


FOREIGN = b'{"control":"ready","pid":17,"generates":false}'
ORDERS = {"lock": "orders", "hold": "3-1"}


@pytest.mark.parametrize(
    "given, lacking",
    [
        (line("fail", "acquire", value=None), "lock"),
        (line("invoke", "acquire", value={"ttl": 1}), "lock"),
        (line("fail", "release", value={"lock": "orders"}), "hold"),
        (line("info", "extend", value={"lock": "orders", "hold": None}), "hold"),
        (line("fail", "read", value={"hold": "3-1"}), "resource"),
        (line("info", "lost", value=None), "lock"),
        (line("info", "lost", value={"lock": "orders"}), "hold"),
        (line("info", "renewed", value=ORDERS), "deadline"),
        (line("info", "renewed", value={"lock": "orders", "deadline": 1}), "hold"),
    ],
)
def test_an_event_that_does_not_name_its_subject_is_a_mistake_of_a_foreign_client(
    hearing, given, lacking
):
    assert hearing.take([FOREIGN, given]).events == []
    assert f"must have {lacking!r}" in hearing.mistake


def test_events_about_holds_of_a_foreign_client_are_recorded_if_they_name_the_hold(hearing):
    said = [
        FOREIGN,
        line("info", "lost", value=ORDERS),
        line("info", "renewed", value=ORDERS | {"deadline": None}),
    ]
    assert [event.f for event in hearing.take(said).events] == ["lost", "renewed"]
    assert hearing.mistake == ""


def test_an_op_whose_completion_cannot_be_parsed_is_completed_as_unknown_before_the_next(hearing):
    found = hearing.take([line(time=1), b"{torn", line(f="release", time=9)])
    ends = [(e.f, e.type, e.time) for e in found.events]
    assert ends == [("acquire", "invoke", 1), ("acquire", "info", 9), ("release", "invoke", 9)]
    assert json.loads(found.lines[1])["error"][0] == "unreadable"


def test_a_read_whose_completion_cannot_be_parsed_keeps_its_process(hearing):
    found = heard(hearing, line(f="read"), b"{torn", line(f="write", time=2))
    assert found == [(3, "read", "invoke"), (3, "read", "fail"), (3, "write", "invoke")]


def test_the_completion_of_an_op_whose_invocation_cannot_be_parsed_is_rejected(hearing):
    assert heard(hearing, b"{torn", line("ok"), line(time=2), line("ok", time=3)) == [BEGUN, DONE]


def test_a_successor_and_events_of_a_library_are_recorded(hearing):
    said = [
        line(), line("info", f="lost"), line("info", time=2), line(f="close", time=3),
        line("ok", f="close", time=4), line(process=8, time=5),
    ]  # fmt: skip
    assert len(heard(hearing, *said)) == len(said)


def test_little_state_is_kept_for_ended_processes(hearing):
    for number in range(1000):
        process, time = 3 + 5 * number, 10 * number
        said = [line(process=process, time=time), line("info", process=process, time=time + 1)]
        assert len(heard(hearing, *said)) == 2
    assert len(hearing._latest) <= 100


def spoilt(random, good):
    """Draw the line with one error in it, most likely."""
    text = bytearray(good)
    match random.randrange(5):
        case 0:
            del text[random.randrange(len(text)) :]
        case 1:
            text[random.randrange(len(text))] = random.randrange(256)
        case 2:
            del text[random.randrange(len(text))]
        case 3:
            fields = json.loads(good)
            key = random.choice([*fields])
            fields[key] = random.choice([None, -1, 1.5, "x", [], {}, [1], 10**30, True])
            text = bytearray(json.dumps(fields).encode())
        case 4:
            text += text[random.randrange(len(text)) :]
    return bytes(text).replace(b"\n", b"")


def session(random, process, count):
    """Return lines of a client that acquires the lock, reads, writes, and releases."""
    time, said = 0, []
    for number in range(count):
        for f, asked, more in (
            ("acquire", {"lock": "orders", "ttl": 10**9}, {"token": number, "hold": f"h{number}"}),
            ("read", {"resource": "account"}, {"value": None, "version": number}),
            ("write", {"resource": "account", "value": f"v{number}", "version": number}, {}),
            ("release", {"lock": "orders", "hold": f"h{number}"}, {}),
        ):
            for type, value in (("invoke", asked), ("ok", asked | more)):
                time += random.randrange(1, 1000)
                said.append(line(type, f, process, time, value=value, node="client-1"))
    return said


@pytest.mark.parametrize("seed", range(40))
def test_whatever_is_corrupted_the_history_can_be_parsed_and_its_ops_paired(tmp_path, seed):
    random = Random(seed)
    recorder = Recorder(tmp_path / "history.jsonl")
    hearing = ClientEvents("client-1", 3, 5, recorder.now, recorder.aside)
    recorder.origin_ns -= 10**10
    said = session(random, 3, 10)
    for place in random.sample(range(len(said)), 12):
        said[place] = spoilt(random, said[place])
    found = hearing.take(said)
    recorder.append(found.lines, found.events)
    recorder.close()
    stored = history.read(recorder.path)
    assert len(stored) == recorder.written >= len(said) - 2 * 12
    assert stored.calls()


def test_rejected_lines_are_kept_up_to_a_bound_and_the_others_counted(tmp_path):
    kept = RejectedLines(tmp_path)
    for _ in range(1000):
        kept.add("client-1", "why", b"x" * 10_000, 10_000, lost=False, since_ns=0)
    kept.add("client-1", "why", b"{torn", 5, lost=True, since_ns=0)
    kept.add("client-2", "why", b"{torn", 5, lost=True, since_ns=0)
    kept.close()
    assert (tmp_path / rejected.NAME).stat().st_size < 500_000
    lost, harmless = rejected.read_rejected(tmp_path)
    assert [words.partition(" (")[0] for words in lost] == [
        "client-1 wrote 1001 lines that are no events",
        "client-2 wrote a line that is no event",
    ]
    assert harmless == []


def test_a_run_without_such_lines_has_no_file_for_them(tmp_path):
    RejectedLines(tmp_path).close()
    assert list(tmp_path.iterdir()) == []
    assert rejected.read_rejected(tmp_path) == ([], [])


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
def test_lines_are_parsed_the_same_in_any_chunks(size):
    text = b"one\ntwo\n\nthree and more\nrest"
    split = Lines()
    found = [one for at in range(0, len(text), size) for one in split.take(text[at : at + size])]
    assert found == [b"one", b"two", b"", b"three and more"]
    assert split.rest() == b"rest"
    assert split.rest() == b""


def test_a_line_without_an_end_takes_no_more_memory_than_a_long_one():
    split, chunk = Lines(100_000), b"x" * 1000
    for _ in range(50_000):
        assert split.take(chunk) == []
        assert sum(map(len, split._parts)) <= 100_000
    long, after = split.take(b"y\nafter\n")
    assert isinstance(long, TooLong)
    assert (long.length, set(long.start)) == (50_000_001, {ord("x")})
    assert after == b"after"


def test_a_line_that_is_too_long_is_rejected_as_a_possible_event(hearing, tmp_path):
    hearing.take([TooLong(b"x" * 100, 50_000_000)])
    (said,), _ = rejected.read_rejected(tmp_path)
    assert "(it is 50000000 bytes long)" in said
