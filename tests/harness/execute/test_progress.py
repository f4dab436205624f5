"""The view of a run survives an error of one status."""

from __future__ import annotations

import threading

from fencepost.harness.execute import progress
from fencepost.harness.execute.progress import Live

WAIT_S = 20.0


def test_after_a_status_that_cannot_be_shown_the_next_one_is(recorder, monkeypatch, capsys):
    monkeypatch.setattr(progress, "_EVERY_S", 0.001)
    told, third = [], threading.Event()

    def tell(status):
        told.append(status)
        if len(told) >= 3:
            third.set()
        raise KeyError("words")

    with Live(recorder, tell):
        assert third.wait(WAIT_S)
    assert capsys.readouterr().err.count("Traceback") == 1


def test_without_a_terminal_or_a_disk_nothing_more_is_shown(recorder, monkeypatch):
    monkeypatch.setattr(progress, "_EVERY_S", 0.001)

    def tell(status):
        raise OSError("no space left")

    with Live(recorder, tell) as live:
        live._thread.join(WAIT_S)
        assert not live._thread.is_alive()
