"""The renewing threads of a real process are paused, and no other thread is."""

from __future__ import annotations

import mmap
import os
import subprocess
import sys
import time

import pytest

from fencepost.node import threads, tracing

# Each thread counts at a place of its own in a file: main, renew_all, watch_all.
COUNTING = """
import mmap, sys, time
from fencepost.workloads.client.machine import _thread as background

file = open(sys.argv[1], "r+b")
counts = mmap.mmap(file.fileno(), 24)

def counter(name, place, rest):
    def count():
        while True:
            now = int.from_bytes(counts[place:place + 8], "little")
            counts[place:place + 8] = (now + 1).to_bytes(8, "little")
            rest()
    count.__name__ = name
    return count

def rest():
    time.sleep(0.03)

first, second, rests = sys.argv[2:]
if first:
    background(counter(first, 8, rest if rests == "rests" else lambda: None))
if second:
    background(counter(second, 16, rest))
counter("main", 0, rest)()
"""


class Counting:
    def __init__(self, folder, first="_renew_all", second="_watch_all", rests="rests"):
        path = folder / "counts"
        path.write_bytes(bytes(24))
        self.file = path.open("rb")
        self.counts = mmap.mmap(self.file.fileno(), 24, access=mmap.ACCESS_READ)
        self.program = subprocess.Popen(
            [sys.executable, "-c", COUNTING, str(path), first, second, rests]
        )
        self.pid = self.program.pid

    def seen(self):
        return [int.from_bytes(self.counts[place : place + 8], "little") for place in (0, 8, 16)]

    def go_on(self, wanted=(0, 1, 2)):
        """Wait until these have counted on; return the others that have meanwhile."""
        before = self.seen()
        end = time.monotonic() + 120
        while True:
            now = self.seen()
            if all(now[place] > before[place] + 3 for place in wanted):
                return [place for place in range(3) if now[place] > before[place]]
            assert time.monotonic() < end, (before, now)
            time.sleep(0.005)


@pytest.fixture
def counting(tmp_path):
    made = []

    def make(**how):
        made.append(Counting(tmp_path, **how))
        return made[-1]

    yield make
    for one in made:
        one.program.kill()
        tracing.let_go_on(one.pid)
        one.program.wait(120)


def letters(said):
    return {row["name"]: row["state"] for row in said["threads"]}


def test_the_renewing_thread_is_paused_and_the_others_continue(counting):
    client = counting()
    client.go_on()
    said = threads.command(["hold", str(client.pid)])
    assert letters(said) == {"renew_all": "t"}
    assert said["main"] not in "tT"
    assert client.go_on((0, 2)) == [0, 2]
    said = threads.command(["go", str(client.pid)])
    assert list(letters(said)) == ["renew_all"]
    assert "t" not in letters(said).values()
    client.go_on()
    assert tracing.traced_threads(client.pid) == []


def test_without_named_threads_all_except_the_main_one_are_paused(counting):
    client = counting(first="work")
    client.go_on()
    said = threads.command(["hold", str(client.pid)])
    assert letters(said) == {"work": "t", "watch_all": "t"}
    assert client.go_on((0,)) == [0]
    threads.command(["go", str(client.pid)])
    client.go_on()


def test_a_process_with_one_thread_renews_nothing(counting):
    client = counting(first="", second="")
    client.go_on((0,))
    with pytest.raises(
        OSError, match=f"process {client.pid} has no thread other than its main one"
    ):
        threads.command(["hold", str(client.pid)])


def test_a_thread_that_never_waits_is_not_paused_and_neither_is_any_other(counting, monkeypatch):
    """It has the interpreter's lock, or gets it next: all would wait for it."""
    monkeypatch.setattr(tracing, "_AT_REST_S", 0.5)
    client = counting(first="_renew_all", second="_renew_too", rests="never")
    client.go_on()
    with pytest.raises(OSError, match="does not wait for anything"):
        threads.command(["hold", str(client.pid)])
    client.go_on()
    assert tracing.traced_threads(client.pid) == []


def test_a_thread_paused_twice_is_paused_once(counting):
    client = counting()
    client.go_on()
    for _ in range(2):
        threads.command(["hold", str(client.pid)])
    assert client.go_on((0, 2)) == [0, 2]
    threads.command(["go", str(client.pid)])
    client.go_on()


def test_a_process_can_be_killed_while_its_thread_is_held(counting):
    client = counting()
    client.go_on()
    threads.command(["hold", str(client.pid)])
    client.program.kill()
    threads.command(["go", str(client.pid)])
    assert client.program.wait(120) == -9


def test_a_thread_continues_once_its_tracer_has_ended(counting):
    client = counting()
    client.go_on()
    holds = f"from fencepost.node import threads; threads.command(['hold', '{client.pid}'])"
    subprocess.run([sys.executable, "-c", f"{holds}; import os; os._exit(0)"], check=True)
    client.go_on()


def test_all_threads_can_be_stopped_for_a_moment_meanwhile(counting):
    """A clock fault does that, to replace code."""
    client = counting()
    client.go_on()
    threads.command(["hold", str(client.pid)])
    with tracing.stopped(client.pid, []):
        before = client.seen()
        time.sleep(0.05)
        assert client.seen() == before
    assert client.go_on((0, 2)) == [0, 2]


def test_an_ended_process_has_no_thread(counting):
    client = counting()
    client.go_on()
    client.program.kill()
    client.program.wait(120)
    with pytest.raises(OSError, match=f"process {client.pid} has no thread"):
        threads.command(["hold", str(client.pid)])
    assert threads.command(["go", str(client.pid)]) == {"threads": [], "main": ""}


def test_paused_threads_are_reported_by_the_kernel(counting):
    client = counting()
    client.go_on()
    said = threads.command(["hold", str(client.pid)])
    (tid,) = (row["tid"] for row in said["threads"])
    with open(f"/proc/{client.pid}/task/{tid}/status") as file:
        status = dict(row.split(":\t", 1) for row in file.read().splitlines())
    assert status["State"].startswith("t (tracing stop)")
    assert int(status["TracerPid"]) == os.getpid()
