"""A written history reads back unchanged, and errors name each line that cannot be parsed."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from fencepost.checker.history import fields
from fencepost.checker.history.decoding import parse
from fencepost.checker.history.history import TYPES, Call, HistoryError, Op, pair, read, write


def line(**fields):
    row = {"index": 0, "time": 0, "process": 0, "type": "invoke", "f": "acquire", "value": {}}
    return json.dumps(row | fields) + "\n"


@pytest.fixture
def file(tmp_path):
    return tmp_path / "history.jsonl"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=4,
)
KNOWN = {"index", "time", "process", "type", "f", "value", "error", "node"}
# The reader checks the types of these fields, whose names Hypothesis draws from the source.
TYPED = fields._OF_CLIENTS.keys() | fields._OF_NEMESIS.keys()
OPS = st.builds(
    Op,
    index=st.integers(0, 2**40),
    time=st.integers(0, 2**62),
    process=st.integers(0, 99) | st.just("nemesis"),
    type=st.sampled_from(TYPES),
    f=st.text(max_size=6),
    value=st.dictionaries(
        st.text(max_size=4).filter(lambda name: name not in TYPED), JSON, max_size=3
    ),
    error=st.none() | st.tuples(st.text(max_size=4), st.text(max_size=9)).map(list),
    node=st.none() | st.text(min_size=1, max_size=4),
    extra=st.dictionaries(st.text(max_size=4).filter(lambda name: name not in KNOWN), JSON),
)


@given(OPS)
@settings(max_examples=100)
def test_an_op_survives_being_written_and_read_with_its_unknown_fields(op):
    assert parse(json.loads(json.dumps(op.to_json()))) == op


def test_a_history_survives_being_written_and_read(file):
    ops = [
        Op(0, 10, 0, "invoke", "acquire", {"lock": "ä"}, node="client-1", extra={"thread": 3}),
        Op(1, 20, 0, "fail", "acquire", {"lock": "ä"}, ["timeout", "late"], "client-1"),
        Op(2, 20, "nemesis", "invoke", "pause", {}),
    ]
    write(file, ops)
    found = read(file)
    assert found.ops == ops
    assert found.notes == []
    assert found.end_ns == 20


def test_an_empty_history_has_no_ops_and_ends_at_zero(file):
    file.write_text("")
    assert (read(file).ops, read(file).notes, read(file).end_ns) == ([], [], 0)


def test_the_torn_last_line_of_a_killed_run_is_dropped_and_noted(file):
    file.write_text(line() + line(index=1, time=5)[:30])
    found = read(file)
    assert [op.index for op in found] == [0]
    assert found.notes == ["the last line (2) is torn and was dropped"]


def test_a_last_line_torn_inside_a_letter_is_dropped_as_well(file):
    file.write_bytes(line().encode() + b'{"time": 1, "f": "\xc3')
    assert len(read(file)) == 1


def test_a_whole_last_line_that_only_lacks_its_line_end_is_kept(file):
    file.write_text(line() + line(index=1, time=5, type="ok").rstrip("\n"))
    assert [op.type for op in read(file)] == ["invoke", "ok"]
    assert read(file).notes == []


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("[1]", "not a JSON object"),
        ("{not json}", "Expecting property name"),
        ('{"time": 1, "f": "read"}', "no process, type"),
        (line(type="done"), "type 'done' is not one of invoke, ok, fail, info"),
        (line(time="1"), "time '1' is not a 64-bit integer"),
        (line(time=1.5), "time 1.5 is not a 64-bit integer"),
        (line(index=True), "index True is not a 64-bit integer"),
        (line(time=2**63), "time 9223372036854775808 is not a 64-bit integer"),
        (line(time=-(2**63) - 1), "time -9223372036854775809 is not a 64-bit integer"),
        (line(index=2**63), "index 9223372036854775808 is not a 64-bit integer"),
        (line(f=["read"]), "f ['read'] is not text"),
        (line(node=1), "node 1 is not text"),
        (line(value={"token": "x"}), "value.token 'x' is not an integer"),
        (line(process="nemesis", value={"targets": 1}), "value.targets 1 is not a list of nodes"),
        (line(process="p1"), "process 'p1' is neither an integer nor 'nemesis'"),
        (line(process=False), "process False is neither"),
        (line(value=[1]), "value [1] is not an object"),
        (line(error="timeout"), "error 'timeout' is not [kind, text]"),
        (line(error=[]), "error [] is not [kind, text]"),
    ],
)
def test_a_bad_line_is_an_error_that_names_the_file_the_line_and_the_reason(file, row, reason):
    file.write_text(line() + row.rstrip("\n") + "\n" + line(index=2))
    with pytest.raises(HistoryError) as error:
        read(file)
    assert f"{file}:2: " in str(error.value)
    assert reason in str(error.value)


@pytest.mark.parametrize("time", [2**63 - 1, -(2**63)])
def test_a_time_has_64_bits(file, time):
    file.write_text(line(time=time))
    assert [op.time for op in read(file)] == [time]


def test_clients_and_the_nemesis_have_their_own_fields(file):
    file.write_text(
        line(value={"targets": 1}) + line(index=1, process="nemesis", value={"token": "x"})
    )
    assert [op.value for op in read(file)] == [{"targets": 1}, {"token": "x"}]


def test_a_missing_history_is_an_error_that_names_it(file):
    with pytest.raises(HistoryError, match=r"history\.jsonl: cannot be read: No such file"):
        read(file)


def test_ops_recorded_late_are_sorted_by_time_renumbered_and_reported(file):
    file.write_text(
        line(index=0, time=30, process=1)
        + line(index=1, time=10, process=2)
        + line(index=2, time=20, process=3)
        + line(index=3, time=20, process=4)
    )
    found = read(file)
    assert [(op.index, op.time, op.process) for op in found] == [
        (0, 10, 2),
        (1, 20, 3),
        (2, 20, 4),
        (3, 30, 1),
    ]
    assert found.notes == ["1 ops were recorded late and have been put in order of time"]


def test_calls_join_each_invocation_with_its_completion_by_process(file):
    file.write_text(
        line(process=1, time=1, value={"lock": "a"})
        + line(process=2, time=2)
        + line(process=2, time=3, type="fail", error=["x", "y"])
        + line(process=1, time=4, type="ok", value={"hold": "h"})
        + line(process=3, time=5, f="read")
        + line(process=1, time=6, f="lost", type="info", value={"hold": "h"})
        + line(process="nemesis", time=7, f="pause")
    )
    calls = read(file).calls()
    assert [(call.begin.process, call.type) for call in calls] == [
        (1, "ok"),
        (2, "fail"),
        (3, "info"),
    ]
    assert calls[0].value == {"lock": "a", "hold": "h"}


def test_a_process_can_not_invoke_while_its_op_is_open(file):
    file.write_text(line() + line(index=1, f="release"))
    with pytest.raises(
        HistoryError, match=r"op 1: process 0 invokes release while its acquire \(op 0\)"
    ):
        read(file).calls()


@pytest.mark.parametrize(
    "ops",
    [
        [Op(0, 0, 7, "ok", "read", {})],
        [Op(0, 0, 7, "invoke", "acquire", {}), Op(1, 1, 7, "ok", "read", {})],
    ],
)
def test_a_process_can_not_complete_an_op_that_it_never_invoked(ops):
    with pytest.raises(HistoryError, match="process 7 completes read that it never invoked"):
        pair(ops)


def test_writing_replaces_the_file_in_one_step_and_leaves_no_other(file):
    file.write_text("old")
    write(file, [Op(0, 1, 0, "invoke", "read", {})])
    assert [path.name for path in file.parent.iterdir()] == ["history.jsonl"]
    assert len(read(file)) == 1


def test_ops_recorded_late_keep_all_their_fields(file):
    late = Op(0, 30, 1, "info", "read", {"a": 1}, ["timeout", "late"], "client-1", {"thread": 3})
    early = Op(0, 10, 2, "ok", "read", {}, None, "client-2", {"thread": 4})
    write(file, [late, early])
    assert read(file).ops == [early, replace(late, index=1)]


def test_ops_without_an_index_are_numbered_by_their_place(file):
    rows = [json.loads(line(time=time)) for time in (1, 2)]
    file.write_text("".join(json.dumps(row | {"index": None}) + "\n" for row in rows))
    with pytest.raises(HistoryError, match="index None is not a 64-bit integer"):
        read(file)
    for row in rows:
        del row["index"]
    assert parse(rows[0]).index == 0
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert [(op.index, op.time) for op in read(file)] == [(0, 1), (1, 2)]


def test_the_error_for_a_long_bad_line_shows_its_beginning(file):
    file.write_text("x" * 500 + "\n")
    with pytest.raises(HistoryError) as error:
        read(file)
    assert str(error.value).endswith(f": {b'x' * 120!r}")


def test_a_history_is_written_one_op_a_line_without_spaces(file):
    fault = Op(1, 2, "nemesis", "info", "pause", {})
    write(file, [Op(0, 1, 0, "ok", "read", {"ä": [1, 2]}), fault])
    assert file.read_bytes() == (
        rb'{"index":0,"time":1,"process":0,"type":"ok","f":"read","value":{"\u00e4":[1,2]}}'
        b"\n"
        b'{"index":1,"time":2,"process":"nemesis","type":"info","f":"pause","value":{}}\n'
    )


def test_a_history_is_written_to_a_temporary_file_until_it_is_complete(file):
    file.write_text("old")
    seen = []

    def ops():
        yield Op(0, 1, 0, "invoke", "read", {})
        seen.extend(path.name for path in file.parent.iterdir() if path != file)
        seen.append(file.read_text())

    write(file, ops())
    scratch, before = seen
    assert scratch.startswith(".history.jsonl.")
    assert before == "old"
    assert [path.name for path in file.parent.iterdir()] == ["history.jsonl"]


def test_a_line_without_end_is_refused_and_not_read_into_memory(file, monkeypatch):
    monkeypatch.setattr("fencepost.checker.history.history._LONGEST", 60)
    monkeypatch.setattr("fencepost.checker.history.history._CHUNK", 20)
    line = b'{"time": 1, "process": 0, "type": "ok", "f": "read"}'
    file.write_bytes(line + b"\n")
    assert len(read(file)) == 1
    file.write_bytes(line + b"\n" + b" " * 60 + line + b"\n")
    with pytest.raises(HistoryError, match=r"history\.jsonl:2: the line is longer than 60 bytes"):
        read(file)


def test_a_whole_last_line_needs_no_newline_and_a_blank_one_says_nothing(file):
    line = b'{"time": 1, "process": 0, "type": "ok", "f": "read"}'
    for end in (b"", b"\n", b"\n\n", b"\n  "):
        file.write_bytes(line + end)
        found = read(file)
        assert (len(found), found.notes) == (1, [])


def test_names_that_ops_of_a_long_file_share_are_kept_once(file, monkeypatch):
    monkeypatch.setattr("fencepost.checker.history.history._LONG", 100)
    line = b'{"time": %d, "process": 0, "type": "ok", "f": "read", "node": "client-1", "value": '
    line += b'{"resource": "account", "value": "client-1.0.7"}}\n'
    file.write_bytes(line % 1 + line % 2)
    first, second = read(file).ops
    assert first.node is second.node
    assert first.f is second.f
    assert first.value["resource"] is second.value["resource"]
    assert [key for key, other in zip(first.value, second.value, strict=True) if key is other] == [
        "resource",
        "value",
    ]
    assert first.extra is second.extra
    assert first.value["value"] is second.value["value"]


def test_an_open_call_has_the_value_of_its_invocation():
    begin = Op(0, 1, 0, "invoke", "acquire", {"lock": "a", "ttl": 5})
    end = Op(1, 2, 0, "ok", "acquire", {"ttl": None, "hold": "h"})
    assert Call(begin, None).value == begin.value
    assert Call(begin, end).value == {"lock": "a", "ttl": None, "hold": "h"}
    for call in (Call(begin, None), Call(begin, end)):
        for name in ("lock", "ttl", "hold", "token"):
            assert call.get(name) == call.value.get(name)
