"""A live check judges a run in progress: which violations it reports, and which not yet."""

from __future__ import annotations

import json
import time

import pytest

from fencepost.checker.history import decoding
from fencepost.checker.history import history as histories
from fencepost.checker.verdict import Verdict
from fencepost.harness.judge import live_check
from fencepost.harness.judge.live_check import Follower, LiveVerdict

pytestmark = pytest.mark.slow

TEST = {"checkers": ["lease_exclusion", "mutual_exclusion", "liveness"], "until": ["any"]}
BROKEN = {"lease_exclusion", "mutual_exclusion"}


@pytest.fixture
def history(tmp_path):
    (tmp_path / "test.json").write_text(json.dumps(TEST))
    path = tmp_path / "history.jsonl"
    path.touch()
    return path


def grant(process, time_ns, index):
    value = {"lock": "l", "ttl": 10**9}
    done = value | {"token": None, "deadline": time_ns + 10**9, "hold": f"{process}-1"}
    return [
        row(index, time_ns - 10, process, "invoke", value),
        row(index + 1, time_ns, process, "ok", done),
    ]


def row(index, time_ns, process, type, value):
    return json.dumps(
        {"index": index, "time": time_ns, "process": process, "type": type, "f": "acquire",
         "value": value, "node": f"client-{process}"}
    ) + "\n"  # fmt: skip


def add(history, *rows):
    with history.open("a") as file:
        file.writelines(rows)


def test_two_holders_are_seen_while_the_history_grows(history):
    with LiveVerdict(history.parent, every_s=0.05) as live:
        add(history, *grant(0, 1000, 0))
        until(lambda: live.seen.until_s)
        assert (live.seen.broken, live.stopped) == ({}, "")
        add(history, *grant(1, 2000, 2))
        until(lambda: live.stopped)
        assert live.stopped == "lease_exclusion"
        assert set(live.seen.broken) == BROKEN
        assert "client-1" in live.seen.broken["lease_exclusion"]


def test_a_judge_that_has_ended_is_reported(history):
    with LiveVerdict(history.parent, every_s=0.05) as live:
        assert live.seen.ended == ""
        live._process.kill()
        until(lambda: live.seen.ended)
        assert live.seen.ended == "exit code -9"


def test_a_judge_that_has_ended_is_reported_with_the_reason(tmp_path):
    with LiveVerdict(tmp_path, every_s=0.05) as live:
        until(lambda: live.seen.ended)
        assert "test.json" in live.seen.ended


def test_a_violation_of_an_unselected_checker_does_not_stop_the_run(history):
    add(history, *grant(0, 1000, 0), *grant(1, 2000, 2))
    (history.parent / "test.json").write_text(json.dumps(TEST | {"until": ["liveness"]}))
    with LiveVerdict(history.parent, every_s=0.05) as live:
        until(lambda: live.seen.broken)
        assert live.stopped == ""


def until(condition):
    end = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)


def test_a_checker_fails_live_after_two_failures_in_a_row(history, monkeypatch):
    """A violation that a late op explains is none."""
    add(history, *grant(0, 1000, 0))
    looks = [{"lease_exclusion"}, set(), {"mutual_exclusion"}, BROKEN]

    def check(run, names):
        now = looks.pop(0)
        return {"faults": Verdict(True, "")} | {
            name: Verdict(name not in now, f"{name} is broken") for name in names
        }

    monkeypatch.setattr(live_check, "check", check)
    follower = Follower(history, TEST)
    found = [follower.look().broken for _ in range(4)]
    assert found == [{}, {}, {}, {"mutual_exclusion": "mutual_exclusion is broken"}]


@pytest.mark.parametrize(("overlap_s", "stops"), [(1.9, []), (2.1, ["leadership"])])
def test_an_overlap_stops_a_run_if_it_is_longer_than_asked_for(
    history, monkeypatch, overlap_s, stops
):
    add(history, *grant(0, 1000, 0))
    found = Verdict(False, "two at work", [], {"overlap_longest_s": overlap_s})
    verdicts = {"faults": Verdict(True, ""), "leadership": found}
    monkeypatch.setattr(live_check, "check", lambda run, names: dict(verdicts))
    follower = Follower(history, {"checkers": ["leadership"], "until": ["overlap>2s"]})
    assert follower.look().stops == []
    seen = follower.look()
    assert (list(seen.broken), seen.stops) == (["leadership"], stops)


def test_checkers_of_a_run_s_end_do_not_judge_a_run_in_progress(history):
    add(history, *grant(0, 1000, 0))
    follower = Follower(history, TEST | {"checkers": ["liveness"]})
    assert [follower.look().broken for _ in range(2)] == [{}, {}]


def test_events_are_read_only_one_time(history, monkeypatch):
    rows = [*grant(0, 1000, 0), *grant(1, 2000, 2), *grant(2, 1500, 4)]
    parsed = []
    ops = decoding.ops
    monkeypatch.setattr(decoding, "ops", lambda lines: parsed.append(lines) or ops(lines))
    tail = histories.Tail(history)
    for number, row in enumerate(rows):
        add(history, row[:10])
        assert len(tail.read()) == number
        add(history, row[10:])
        assert len(tail.read()) == number + 1
    assert b"".join(parsed).count(b"\n") == len(rows)
    assert tail.read().ops == histories.read(history).ops
    assert [op.process for op in tail.read()] == [0, 0, 2, 2, 1, 1]


def test_the_process_ends_with_the_one_that_started_it(history):
    live = LiveVerdict(history.parent, every_s=0.01)
    live._process.stdin.close()
    assert live._process.wait(120) == 0
    live._process.stdout.close()
