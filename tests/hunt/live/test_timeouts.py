"""Until when a process waits is seen in /proc."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from fencepost.hunt.live.timeouts import Timeouts
from fencepost.hunt.sim.world import MS, NEVER

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="/proc is part of Linux"
)
WAIT_S = 600


@contextmanager
def process(code):
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE) as made:
        try:
            yield made
        finally:
            made.kill()


def polls(timeout_s):
    """Return the code of a process that polls again after each stop, as Node and Go do."""
    return f"""
import select, time
poll, end = select.epoll(), time.monotonic() + {timeout_s}
while True:
    poll.poll({timeout_s} if {timeout_s} < 0 else end - time.monotonic())
"""


def until(seen):
    while (found := seen()) in (None, NEVER):
        time.sleep(0.01)
    return found


def test_a_timeout_is_counted_from_the_time_at_which_the_wait_began():
    with process(polls(WAIT_S)) as made:
        timeouts = Timeouts(made.pid)
        first = until(lambda: timeouts.earliest(5 * MS))
        # It may round its timeout down to a millisecond, as Go does.
        assert 0 < first <= 5 * MS + (WAIT_S * 1000 + 1) * MS
        # It has not run since.
        assert timeouts.earliest(500 * MS) == first
        timeouts.close()


def test_a_process_without_a_timeout_never_wakes_by_itself():
    with process(polls(-1)) as made:
        wchan = Path(f"/proc/{made.pid}/wchan")
        while b"epoll" not in wchan.read_bytes():
            time.sleep(0.01)
        assert Timeouts(made.pid).earliest(0) == NEVER


def test_a_process_at_work_has_no_time_at_which_it_wakes():
    with process("while True: pass") as made:
        timeouts = Timeouts(made.pid)
        while timeouts.earliest(0) is not None:
            time.sleep(0.01)


def test_an_interrupted_wait_begins_again_and_the_process_is_not_stopped():
    with process(polls(WAIT_S)) as made:
        timeouts = Timeouts(made.pid)
        first = until(lambda: timeouts.earliest(0))
        timeouts.end(first - 1)
        assert until(lambda: timeouts.earliest(5000 * MS)) == first  # it has not ended
        timeouts.end(first)
        second = until(lambda: timeouts.earliest(5000 * MS))
        while second == first:  # it has not had the processor yet
            second = until(lambda: timeouts.earliest(5000 * MS))
        assert 5000 * MS < second <= 5000 * MS + first
        assert "(stopped)" not in Path(f"/proc/{made.pid}/status").read_text()
        timeouts.close()


def test_threads_are_looked_at_again_only_after_the_process_has_run_or_got_something(monkeypatch):
    with process(polls(WAIT_S)) as made:
        timeouts = Timeouts(made.pid)
        end = until(lambda: timeouts.earliest(0))
        while not timeouts.waits():
            time.sleep(0.001)
        looks = []
        monkeypatch.setattr(os, "pread", lambda file, *more: looks.append(file) or b"running\n")
        assert timeouts.waits() and timeouts.earliest(7 * MS) == end and not looks
        timeouts.poke(wakes=False)
        assert not timeouts.waits() and timeouts.earliest(7 * MS) is None and looks


def test_a_process_that_was_woken_and_has_not_run_does_not_wait_until_it_was_looked_at():
    with process(polls(WAIT_S)) as made:
        timeouts = Timeouts(made.pid)
        until(lambda: timeouts.earliest(0))
        while not timeouts.waits():
            time.sleep(0.001)
        timeouts.poke()
        assert not timeouts.waits()
        while not timeouts.waits():  # nothing has woken it: its threads say so
            time.sleep(0.001)


def test_a_process_waits_only_if_all_its_threads_do():
    code = """
import select, sys, threading
def burn():
    while True: pass
select.epoll().poll(0.01)
threading.Thread(target=burn, daemon=True).start()
select.epoll().poll()
"""
    with process(code) as made:
        while "Threads:\t2" not in Path(f"/proc/{made.pid}/status").read_text():
            time.sleep(0.001)
        one, alone = Timeouts(made.pid), Timeouts(made.pid, first_alone=True)
        assert not any(one.waits() for _ in range(50))
        while not alone.waits():
            time.sleep(0.001)
        assert alone.earliest(0) is None


def test_a_process_that_has_ended_waits_and_never_wakes():
    with process("pass") as made:
        timeouts = Timeouts(made.pid)
        made.wait()
        assert timeouts.waits() and timeouts.earliest(0) == NEVER
        timeouts.end(0)
        timeouts.close()
