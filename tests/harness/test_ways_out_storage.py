"""A disk that is full, a history or a log that cannot be kept whole: judged as far as it goes."""

from __future__ import annotations

import threading
from dataclasses import replace

from fencepost.harness.db import server
from fencepost.harness.remote.remote import Result
from fencepost.harness.run.recorder import Recorder
from harness.disturbed import (
    PAUSES,
    SPEC,
    assert_judged_and_put_away,
    carried_out,
)
from harness.memory import Node
from harness.recording import Full


def test_a_history_that_cannot_be_written_is_a_crash_and_what_was_written_is_judged(
    cluster, monkeypatch
):
    full = threading.Event()

    def no_space(self, data):
        if self.counts["acquire", "ok"] > 2:
            full.set()
            self.failure = OSError(28, "No space left on device")
            raise self.failure
        self._file.write(data)

    monkeypatch.setattr("fencepost.harness.run.recorder.Recorder._write", no_space)
    ended = carried_out(cluster, schedule=[])
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


def test_of_a_server_s_log_that_is_too_long_both_ends_are_kept_and_the_run_says_so(
    cluster, monkeypatch
):
    monkeypatch.setattr(server, "LOG_MOST", 20)
    long = {"stat": "5020\n", "head": "it starts\n", "tail": "\nit ends\n"}
    answering = Node.run

    def run(node, argv, **options):
        answer = answering(node, argv, **options)
        if node.node == "redis-1" and argv[0] in long:
            return Result(0, long[argv[0]], "")
        return answer

    monkeypatch.setattr(Node, "run", run)
    ended = carried_out(cluster, schedule=[])
    assert_judged_and_put_away(ended, cluster)
    kept = (ended.folder / "nodes/redis-1/server.log").read_text().split("\n")
    assert kept[0] == "it starts"
    assert "... 5000 bytes were left out here ..." in kept
    assert kept[-2] == "it ends"
    words = "redis-1/server.log is not complete: 5000 bytes in its middle are missing."
    assert (ended.notes, ended.outcome.valid) == (words, "unknown")
