"""A system call in which a thread sleeps is made to return, and nothing else of the process."""

from __future__ import annotations

import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from fencepost.harness.hunting import interrupt

pytestmark = pytest.mark.skipif(
    not (sys.platform.startswith("linux") and interrupt.CAN), reason="needs Linux on x86-64"
)
POLL, NANOSLEEP, RESTARTED = 7, 35, 219
WAITS = """
import select, sys, time
poll = select.poll()
print(poll.poll(600_000), flush=True)
sys.stdin.readline()
print("goes on", flush=True)
"""
WORKS = "while True: pass"


@contextmanager
def process(code):
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as made:
        try:
            yield made
        finally:
            made.kill()


def call(pid):
    return Path(f"/proc/{pid}/syscall").read_text().split()[0]


def test_a_poll_returns_as_after_its_timeout_and_the_program_goes_on():
    with process(WAITS) as made:
        while call(made.pid) != str(POLL):
            time.sleep(0.01)
        assert not interrupt.returns(made.pid, (NANOSLEEP,), 0)
        while call(made.pid) != str(RESTARTED):
            time.sleep(0.01)
        assert interrupt.returns(made.pid, (POLL, RESTARTED), 0)
        assert made.stdout.readline() == b"[]\n"
        assert made.communicate(b"\n") == (b"goes on\n", None)
        assert made.returncode == 0


def test_a_thread_that_does_not_sleep_is_left_alone():
    with process(WORKS) as made:
        while call(made.pid) != "running":
            time.sleep(0.01)
        assert not interrupt.returns(made.pid, (POLL,), 0)
        assert made.poll() is None


def test_a_process_that_has_ended_is_not_an_error():
    with process("pass") as made:
        made.wait()
        assert not interrupt.returns(made.pid, (POLL,), 0)
