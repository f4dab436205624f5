"""The processor time of another process is known exactly."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

from fencepost.hunt.live.work_time import WorkTime

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs Linux")


def stands(work):
    """Wait until the time stands; a thread that has been joined may still work on its end."""
    for _ in range(500):
        before = work.ns()
        time.sleep(0.02)
        if work.ns() == before:
            return before
    raise AssertionError("it does not stand")


def test_it_grows_while_any_thread_works_and_stands_while_all_sleep():
    code = """
import sys, threading, time
def burn():
    end = time.thread_time() + 0.05
    while time.thread_time() < end: pass
for line in sys.stdin:
    one = threading.Thread(target=burn)
    one.start()
    one.join()
    print("burnt", flush=True)
"""
    words = [sys.executable, "-c", code]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(words, **pipes, text=True, bufsize=1) as made:
        work = WorkTime(made.pid)
        made.stdin.write("\n")
        made.stdout.readline()
        before = stands(work)
        made.stdin.write("\n")
        made.stdout.readline()
        assert work.ns() >= before + 50_000_000
        made.kill()
        made.wait()
        assert work.ns() is None
