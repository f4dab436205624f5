"""Periodic chores repeat during a run, and end with it."""

from __future__ import annotations

import threading

from fencepost.harness.execute.periodic import now_and_then

WAIT_S = 20.0


def test_chores_run_in_order_until_the_block_ends():
    done, third = [], threading.Event()

    def last():
        done.append("last")
        if len(done) >= 6:
            third.set()

    with now_and_then(lambda: done.append("first"), last, every_s=0.001):
        assert third.wait(WAIT_S)
    assert done[:4] == ["first", "last"] * 2
    assert "chores" not in [thread.name for thread in threading.enumerate()]


def test_a_chore_that_fails_is_tried_again_and_the_others_go_on(capsys):
    done, third = [], threading.Event()

    def fails():
        done.append("first")
        raise KeyError("size")

    def last():
        done.append("last")
        if len(done) >= 6:
            third.set()

    with now_and_then(fails, last, every_s=0.001):
        assert third.wait(WAIT_S)
    assert done[:4] == ["first", "last"] * 2
    assert capsys.readouterr().err.count("Traceback") == 1
