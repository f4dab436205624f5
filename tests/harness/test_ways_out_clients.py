"""A client that hangs, dies or writes rubbish: the run goes on, and says which one it was."""

from __future__ import annotations

import signal
import threading

import pytest

from fencepost.checker import history
from fencepost.harness.run import judge
from harness.disturbed import (
    assert_judged_and_put_away,
    carried_out,
)
from harness.memory_service import Silent


def test_a_client_that_hangs_is_named_with_the_op_that_it_hangs_in(cluster):
    def answers(node, f):
        if (node, f) == ("client-2", "acquire"):
            raise Silent

    cluster.service.answers = answers
    ended = carried_out(cluster, schedule=[])
    assert_judged_and_put_away(ended, cluster)
    assert "client-2 did not come to rest: its acquire has no answer yet." in ended.notes
    assert ended.outcome.valid == "unknown"


def test_a_client_that_dies_by_itself_leaves_its_op_unknown_and_a_note(cluster):
    gone = threading.Event()

    def answers(node, f):
        if (node, f) == ("client-2", "write") and not gone.is_set():
            gone.set()
            remote = cluster.remote("client-2")
            remote.signal(remote.programs[0].pid, signal.SIGKILL)

    cluster.service.answers = answers
    ended = carried_out(cluster, schedule=[])
    assert_judged_and_put_away(ended, cluster)
    assert "client-2 did not come to rest: its program has ended." in ended.notes
    last = [op for op in history.read(ended.folder / "history.jsonl") if op.node == "client-2"][-1]
    assert (last.f, last.type, last.error[0]) == ("write", "info", "killed")


def writes(cluster, rubbish):
    """client-2 also writes this, whenever it is about to read."""

    def answers(node, f):
        if (node, f) == ("client-2", "read"):
            cluster.remote(node).programs[0].stdout.write(rubbish)

    cluster.service.answers = answers


RUBBISH = [b"\n", b"a.py:7: DeprecationWarning: \xff is old\n", b'{"time":1,"pro\n', b"{}{}\n"]


@pytest.mark.parametrize("rubbish", RUBBISH)
def test_a_client_that_writes_rubbish_is_named_and_all_else_that_it_says_is_recorded(
    cluster, rubbish
):
    writes(cluster, rubbish)
    ended = carried_out(cluster, schedule=[])
    assert_judged_and_put_away(ended, cluster)
    assert ended.error is None
    assert ended.outcome.valid == ("unknown" if b"{" in rubbish else True)
    (said,) = [note for note in ended.results["notes"] if note.startswith("client-2 wrote ")]
    ops = [op for op in history.read(ended.folder / "history.jsonl") if op.node == "client-2"]
    assert {"read", "write", "release", "close"} <= {op.f for op in ops if op.type == "ok"}
    again = judge.judge(ended.folder)
    assert (again.valid, said in again.results["notes"]) == (ended.outcome.valid, True)
