"""Until when a process waits is seen in /proc."""

from __future__ import annotations

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
        assert 0 < first <= 5 * MS + WAIT_S * 1000 * MS
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


def test_a_process_that_has_ended_never_wakes():
    with process("pass") as made:
        made.wait()
        assert Timeouts(made.pid).earliest(0) == NEVER
