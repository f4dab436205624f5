"""Worker processes of a pool end on request, from their first moment on."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from multiprocessing import util

import pytest

from fencepost.hunt.search.pool import pool

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="Windows forks nothing")


class Forked:
    """Records each process that starts, and ends the first one before it has started."""

    def __init__(self, place):
        self.place = place
        util.register_after_fork(self, Forked.begins)

    def begins(self):
        with self.place.open("a") as file:
            file.write(f"{os.getpid()}\n")
        if len(self.begun()) == 1:
            os.kill(os.getpid(), signal.SIGTERM)

    def begun(self):
        return self.place.read_text().split()


def nothing():
    """Return the initial state of a process."""


@pytest.fixture
def swallowed():
    """Handle SIGTERM as a command with cleanup does: record it only."""
    noted = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: noted.append(number))
    yield noted
    signal.signal(signal.SIGTERM, before)


def test_a_process_that_is_ended_before_it_has_started_ends(tmp_path, swallowed):
    forked = Forked(tmp_path / "begun")
    with pool(2, nothing) as made:
        assert made.map(abs, [-1, -2, -3]) == [1, 2, 3]
        # Another one has replaced it.
        end = time.monotonic() + 120
        while len(forked.begun()) < 3 and time.monotonic() < end:
            made.map(abs, range(3))
    assert len(set(forked.begun())) == 3


def test_the_process_that_makes_it_takes_its_own_signals_as_before(swallowed):
    with pool(1, nothing) as made:
        assert made.map(abs, [-1]) == [1]
        os.kill(os.getpid(), signal.SIGTERM)
    assert swallowed == [signal.SIGTERM]


MAKES = """
import os, signal, time
from fencepost.hunt.search.pool import pool

def work(number):
    os.write(1, b"%d\\n" % number)  # at once: two processes write
    time.sleep(600)

with pool(2, str) as made:
    made.map_async(work, [1, 2])
    signal.pause()
"""


def test_processes_end_in_the_middle_of_their_work_if_the_one_that_made_them_is_killed():
    with subprocess.Popen([sys.executable, "-c", MAKES], stdout=subprocess.PIPE) as maker:
        try:
            begun = {maker.stdout.readline(), maker.stdout.readline()}
        finally:
            maker.kill()
        assert begun == {b"1\n", b"2\n"}
        # Each process has the pipe, which ends when all have ended.
        assert select.select([maker.stdout], [], [], 120) == ([maker.stdout], [], [])
        assert maker.stdout.read() == b""
