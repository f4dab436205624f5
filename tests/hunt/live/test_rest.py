"""A process waits if none of its threads runs."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

from fencepost.hunt.live.rest import Rest

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc")
_WORK = """
import sys, threading
def work(words):
    for line in sys.stdin:
        n = 0
        while line == "burn\\n":
            n += 1
        print(line, end="", flush=True)
threads = [threading.Thread(target=work, args=("",))] if sys.argv[1] == "thread" else []
for one in threads: one.start()
print("ready", flush=True)
for one in threads: one.join()
work("")
"""


@pytest.fixture(params=["first", "thread"])
def process(request):
    words = [sys.executable, "-c", _WORK, request.param]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(words, **pipes, text=True, bufsize=1) as made:
        assert made.stdout.readline() == "ready\n"
        yield made
        made.kill()


def until(true, within_s=60):
    end = time.monotonic() + within_s
    while not true():
        assert time.monotonic() < end
        time.sleep(0.001)


def test_a_process_waits_until_something_happens(process):
    rest = Rest(process.pid)
    until(rest.waits)
    process.stdin.write("hello\n")
    assert process.stdout.readline() == "hello\n"
    until(rest.waits)
    process.stdin.write("burn\n")
    until(lambda: not rest.waits())
    rest.close()


def test_the_processor_time_of_a_process_is_seen(process):
    rest = Rest(process.pid)
    before_s = rest.worked_s()
    process.stdin.write("burn\n")
    until(lambda: rest.worked_s() > before_s + 0.02)
    process.kill()
    process.wait()
    assert rest.worked_s() == 0.0
    rest.close()


def test_a_process_that_works_does_not_wait(process):
    rest = Rest(process.pid)
    until(rest.waits)
    process.stdin.write("burn\n")
    until(lambda: not rest.waits())
    assert not any(rest.waits() for _ in range(50))
    process.kill()
    process.wait()
    until(rest.waits)
    rest.close()
