"""Judging within a limit of memory: beyond it the verdict is unknown, and the command ends."""

from __future__ import annotations

import sys

import pytest

from fencepost.harness.command.app import run
from fencepost.harness.judge import segments
from fencepost.harness.process import memory_limited

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux shows the size")


def test_a_process_grows_up_to_its_limit_and_without_limit_after_it():
    with memory_limited(50):
        bytearray(10_000_000)
        with pytest.raises(MemoryError):
            bytearray(200_000_000)
    bytearray(200_000_000)


def test_a_run_that_the_memory_does_not_suffice_for_is_unknown(tmp_path, monkeypatch, capsys):
    (tmp_path / "history.jsonl").touch()
    (tmp_path / "test.json").write_text("{}")
    monkeypatch.setattr(segments, "judge_run", lambda folder: bytearray(200_000_000))
    words = ["fencepost", "analyze", str(tmp_path), "--memory-limit", "50"]
    monkeypatch.setattr(sys, "argv", words)
    assert run() == 2
    assert "Unknown: the memory did not suffice to judge" in capsys.readouterr().out
