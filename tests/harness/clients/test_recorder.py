"""The recorder writes every line at once, and sorts the lines at the end."""

from __future__ import annotations

import json
import threading

import pytest

from fencepost.checker.history import history
from fencepost.harness.clients.recorder import Recorder, finish, is_live
from tests.harness.recording import Full, record


@pytest.fixture
def recorder(tmp_path):
    recorder = Recorder(tmp_path / "history.jsonl")
    yield recorder
    recorder.close()


def line(process, number, time=0, **more):
    row = {"time": time, "process": process, "type": "invoke", "f": "read", "value": {"n": number}}
    return json.dumps(row | more).encode()


def stored(recorder):
    return [json.loads(row) for row in recorder.path.read_text().splitlines()]


def test_lines_are_appended_in_order_of_arrival_with_a_rising_index(recorder):
    record(recorder, [line(1, 0, thread="x"), line(2, 1)])
    record(recorder, [line(1, 2)])
    rows = stored(recorder)
    assert [row["index"] for row in rows] == [0, 1, 2]
    assert rows[0] == {"index": 0} | json.loads(line(1, 0, thread="x"))
    assert recorder.written == 3
    assert recorder.counts["read", "invoke"] == 3


def test_recorded_lines_are_in_the_file_before_the_recorder_is_closed(recorder):
    record(recorder, [line(1, 0)])
    assert len(history.read(recorder.path)) == 1


def test_an_op_of_the_harness_is_stamped_with_the_time_since_the_start(recorder):
    before = recorder.now()
    recorder.op("nemesis", "info", "pause", {"phase": "start"}, ["unproved", "why"], "redis-1")
    (row,) = stored(recorder)
    assert before <= row.pop("time") <= recorder.now()
    assert row == {
        "index": 0,
        "process": "nemesis",
        "type": "info",
        "f": "pause",
        "value": {"phase": "start"},
        "error": ["unproved", "why"],
        "node": "redis-1",
    }


def test_concurrent_writers_keep_every_line_whole_and_numbered_once(recorder):
    each, writers = 200, 8
    together = threading.Barrier(writers)

    def write(process):
        together.wait()
        for number in range(0, each, 4):
            record(recorder, [line(process, n) for n in range(number, number + 4)])

    threads = [threading.Thread(target=write, args=(process,)) for process in range(writers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    rows = stored(recorder)
    assert [row["index"] for row in rows] == list(range(each * writers))
    for process in range(writers):
        mine = [row["value"]["n"] for row in rows if row["process"] == process]
        assert mine == list(range(each))
    assert recorder.counts["read", "invoke"] == each * writers


def grant(process, lock, type="ok"):
    row = {"time": 0, "process": process, "type": type, "f": "acquire"}
    return json.dumps(row | {"value": {"lock": lock, "ttl": 1, "token": None}}).encode()


def test_grants_of_several_locks_are_counted_apart(tmp_path):
    recorder = Recorder(tmp_path / "history.jsonl", ["a", "b", "c"])
    record(recorder, [grant(1, "a"), grant(1, "b"), grant(2, "b", "fail"), line(2, 0)])
    record(recorder, [grant(6, "b")])
    assert [recorder.grants_of(lock) for lock in "abc"] == [1, 2, 0]
    assert recorder.grants == {("a", 1): 1, ("b", 1): 1, ("b", 6): 1}
    assert [recorder.last_granted(process) for process in (1, 2, 6)] == ["b", None, "b"]
    recorder.close()


def test_of_one_lock_a_grant_is_counted_without_a_look_at_its_value(tmp_path):
    recorder = Recorder(tmp_path / "history.jsonl", ["orders"])
    record(recorder, [b'{"time":0,"process":4,"type":"ok","f":"acquire"}'])
    assert (recorder.grants_of("orders"), recorder.last_granted(4)) == (1, "orders")
    recorder.close()


def test_no_state_is_kept_for_ended_processes(tmp_path):
    recorder = Recorder(tmp_path / "history.jsonl", ["a"], clients=5)
    record(recorder, [grant(process, "a") for process in range(0, 5000, 5)])
    assert recorder.grants == {("a", 0): 1000}
    assert recorder.last_granted(4995) == "a"
    assert recorder.last_granted(4990) is None
    assert len(recorder._last) == 1
    recorder.close()


def test_a_disk_that_is_full_is_remembered_for_the_run_s_end(recorder):
    recorder._file.close()
    recorder._file = open("/dev/full", "ab", buffering=0)  # noqa: SIM115
    with pytest.raises(OSError, match="No space left"):
        record(recorder, [line(1, 0)])
    assert recorder.failure is not None


@pytest.mark.parametrize("torn", [1, 40, -1])
def test_a_full_disk_leaves_a_history_that_ends_with_its_last_whole_line(recorder, torn):
    record(recorder, [line(1, 0)])
    one = recorder.path.stat().st_size
    full = recorder._file = Full(recorder._file, 2 * one + (torn % one))
    with pytest.raises(OSError, match="No space left"):
        record(recorder, [line(1, n) for n in range(1, 6)])
    assert [op.value["n"] for op in history.read(recorder.path)] == [0, 1, 2]
    assert history.read(recorder.path).notes == []
    assert recorder.written == 3
    # Lines written after space is free again would follow a gap.
    full.free(10_000)
    with pytest.raises(OSError, match="No space left"):
        record(recorder, [line(1, 6)])
    assert len(history.read(recorder.path)) == recorder.written == 3
    assert recorder.failure.filename == str(recorder.path)


def test_lines_after_the_end_are_refused_without_failing_the_run(recorder):
    record(recorder, [line(1, 0)])
    recorder.close()
    with pytest.raises(OSError, match="the history is closed"):
        record(recorder, [line(1, 1)])
    assert recorder.failure is None
    assert len(stored(recorder)) == 1


def test_a_finished_history_is_in_order_of_time_and_stays_so(recorder):
    record(recorder, [line(1, 0, time=30), line(2, 1, time=10), line(3, 2, time=20)])
    recorder.close()
    found = finish(recorder.path)
    assert [op.process for op in found] == [2, 3, 1]
    assert found.notes == ["1 ops were recorded late and have been put in order of time"]
    again = finish(recorder.path)
    assert again.ops == found.ops
    assert [op.index for op in again] == [0, 1, 2]
    assert again.notes == []


def test_a_killed_run_s_torn_last_line_is_removed_from_its_history(recorder):
    record(recorder, [line(1, 0)])
    recorder.close()
    with recorder.path.open("ab") as file:
        file.write(b'{"index":1,"ti')
    assert finish(recorder.path).notes == ["the last line (2) is torn and was dropped"]
    assert [row["index"] for row in stored(recorder)] == [0]


def test_a_history_that_is_being_written_is_read_and_left_where_it_is(recorder):
    record(recorder, [line(1, 0, time=30), line(2, 1, time=10)])
    before = recorder.path.read_bytes()
    assert is_live(recorder.path)
    assert [op.process for op in finish(recorder.path)] == [2, 1]
    assert recorder.path.read_bytes() == before
    record(recorder, [line(3, 2, time=20)])
    recorder.close()
    assert not is_live(recorder.path)
    assert [op.process for op in finish(recorder.path)] == [2, 3, 1]


def test_a_missing_history_is_not_created(tmp_path):
    assert not is_live(tmp_path / "history.jsonl")
