"""A full disk and an incomplete history or log: the recorded part is judged."""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from functools import partial

import pytest

from fencepost.harness.clients.recorder import Recorder
from fencepost.harness.execute import run_once
from fencepost.harness.remote.remote import RemoteError, Result
from tests.harness.disturbed import (
    PAUSES,
    SPEC,
    assert_judged_and_put_away,
    carried_out,
)
from tests.harness.memory import Node
from tests.harness.recording import Full


def test_a_history_that_cannot_be_written_is_a_crash_and_its_recorded_part_is_judged(
    cluster, monkeypatch
):
    full = threading.Event()

    def no_space(self, data):
        if self.counts["acquire", "ok"] > 2:
            full.set()
            self.failure = OSError(28, "No space left on device")
            raise self.failure
        self._file.write(data)

    monkeypatch.setattr("fencepost.harness.clients.recorder.Recorder._write", no_space)
    ended = carried_out(cluster, replace(SPEC, time_s=60.0), schedule=[])
    assert full.is_set()
    assert isinstance(ended.error, OSError)
    assert "The history is not complete: No space left on device." in ended.notes
    assert_judged_and_put_away(ended, cluster)


def test_a_disk_that_fills_up_ends_the_run_with_the_history_that_it_had_room_for(
    cluster, monkeypatch
):
    starting = Recorder.start

    def start(recorder):
        starting(recorder)
        recorder._file = Full(recorder._file, 5000)

    monkeypatch.setattr(Recorder, "start", start)
    ended = carried_out(cluster, replace(SPEC, time_s=60.0), schedule=[])
    stored = ended.folder / "history.jsonl"
    assert isinstance(ended.error, OSError)
    assert ended.error.filename == str(stored)
    assert "The history is not complete: No space left on device." in ended.notes
    assert "Its recorder wrote" not in ended.notes
    assert_judged_and_put_away(ended, cluster)
    assert 4000 < stored.stat().st_size <= 5000


def test_a_fault_that_is_on_when_the_disk_is_full_is_healed(cluster, monkeypatch):
    def no_room(recorder, data):
        recorder.failure = OSError(28, "No space left on device")
        raise recorder.failure

    def before(call):
        if (call.node, call.what) == ("redis-1", "SIGSTOP"):
            monkeypatch.setattr(Recorder, "_write", no_room)

    cluster.before = before
    ended = carried_out(cluster, replace(SPEC, time_s=60.0), PAUSES[:1])
    assert isinstance(ended.error, OSError)
    assert cluster.left == []
    assert [call.what for call in cluster.calls if call.verb == "signal"][-1] == "SIGCONT"


@pytest.mark.parametrize(
    ("unkept", "valid", "gap"),
    [
        (0, True, "... 5000 bytes were left out here, once they had been searched ..."),
        (7, "unknown", "... 5000 bytes were left out here ..."),
    ],
)
def test_a_server_s_log_arrives_without_its_middle_and_is_judged_by_the_searched_part(
    cluster, monkeypatch, unkept, valid, gap
):
    parts = {
        "fencepost-node": json.dumps({"since": 0, "start": 10, "end": 5010, "unkept": unkept}),
        "bash": "it starts\n",
        "tail": "it ends\n",
    }
    answering, getting = Node.run, Node.get

    def answers(node, argv, **options):
        answer = answering(node, argv, **options)
        if node.node == "redis-1" and (
            argv[0] == "tail" or argv[1:2] == ["log"] or "head -c 10" in argv[-1]
        ):
            return Result(0, parts[argv[0]], "")
        return answer

    def get(node, path):
        return b"a line that matters\n" if path.endswith(".kept") else getting(node, path)

    monkeypatch.setattr(Node, "run", answers)
    monkeypatch.setattr(Node, "get", get)
    ended = carried_out(cluster, schedule=[])
    assert_judged_and_put_away(ended, cluster)
    kept = (ended.folder / "nodes/redis-1/server.log").read_text().splitlines()
    assert kept == ["it starts", gap, "a line that matters", "it ends"]
    assert ended.outcome.verdicts["server-log"].valid is valid
    assert ended.notes == ""


QUICKLY = partial(run_once.now_and_then, every_s=0.01)


def test_servers_logs_are_truncated_during_a_run(cluster, monkeypatch):
    monkeypatch.setattr(run_once, "now_and_then", QUICKLY)
    carried_out(cluster, schedule=[])
    asked = [call.node for call in cluster.calls if call.what.startswith("fencepost-node log")]
    # At the end there is one more for each server's log, which is then fetched.
    assert asked.count("redis-1") > 1
    assert "storage" in asked


def test_a_silent_node_keeps_its_log_and_the_run_continues(cluster, monkeypatch):
    monkeypatch.setattr(run_once, "now_and_then", QUICKLY)

    def before(call):
        if call.node == "redis-1" and call.what.startswith("fencepost-node log"):
            raise RemoteError("redis-1: the node does not answer")

    cluster.before = before
    ended = carried_out(cluster, schedule=[])
    assert_judged_and_put_away(ended, cluster)
