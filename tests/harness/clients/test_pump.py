"""A pump passes a program's output on in full, and keeps none of it."""

from __future__ import annotations

import json
import os
import signal
import sys

import pytest

from fencepost.workloads.client.pump import over

pytestmark = pytest.mark.slow

PUMP = [sys.executable, "-m", "fencepost.workloads.client.pump", sys.executable, "-c"]
LINES = 50_000
TALKS = f"""
import os, sys
for number in range({LINES}):
    os.write(1, b"%0100d\\n" % number)
sys.stdin.read()
"""
DIES = """
import os, signal
os.write(1, b"last words")
os.kill(os.getpid(), signal.SIGKILL)
"""


def read(program, size):
    found = b""
    while len(found) < size and (chunk := program.stdout.read(size - len(found))):
        found += chunk
    return found


def spooled(pid):
    """Return the bytes of memory that a pump's file takes."""
    fds = (f"/proc/{pid}/fd/{fd}" for fd in os.listdir(f"/proc/{pid}/fd"))
    return 512 * sum(os.stat(fd).st_blocks for fd in fds if "memfd:" in os.readlink(fd))


def test_everything_is_passed_on_in_order_and_its_memory_is_freed(spawn, eventually):
    pump = spawn([*PUMP, TALKS])
    said = read(pump, 101 * LINES)
    assert said == b"".join(b"%0100d\n" % number for number in range(LINES))
    eventually(lambda: spooled(pump.pid) < 1 << 16)
    pump.stdin.close()
    assert pump.wait(120) == 0
    assert pump.stdout.read(100) == over(0)


def test_the_last_output_of_a_killed_program_and_its_exit_status_are_passed_on(spawn):
    pump = spawn([*PUMP, DIES])
    assert read(pump, 100) == b"last words\n" + over(-signal.SIGKILL)
    assert pump.wait(120) == -signal.SIGKILL & 0xFF


WRITES = """
import os, sys
for number in range(150):
    os.write(1, b"%099d\\n" % number * 10_000)
os.write(2, b"written")
sys.stdin.read()
"""


def test_a_program_whose_output_is_not_read_takes_bounded_memory(spawn):
    pump = spawn([*PUMP, WRITES])
    assert pump.stderr.read(7) == b"written"
    pump.stdin.close()
    said = pump.stdout.read()
    assert pump.wait(120) == 0
    rows = said.splitlines()
    gap, last = [json.loads(row) for row in rows if row.startswith(b"{")]
    assert last == json.loads(over(0)) == json.loads(rows.pop())
    assert len(said) < 70 << 20
    assert gap["bytes"] + 100 * (len(rows) - 1) == 150 * 1_000_000
    assert (rows[0], rows[-1]) == (b"%099d" % 0, b"%099d" % 149)


RESTARTS = """
import os, sys
left = open(os.environ["FENCEPOST_SUCCESSION"], "r+")
state = left.read()
os.write(1, f"{len(state)} {sys.stdin.buffer.raw.read(2).decode()}".encode())
left.seek(0)
left.truncate()
left.write(state + "x" if len(state) < 2 else "")
left.flush()
os._exit(75)
"""


def test_a_program_that_leaves_a_state_is_started_again_on_the_same_streams(spawn):
    pump = spawn([*PUMP, RESTARTS])
    pump.stdin.write(b"a\nb\nc\n")
    pump.stdin.flush()
    # The third one ends with the same exit code, and leaves nothing.
    assert read(pump, 1000) == b"0 a\n1 b\n2 c\n" + over(75)
    assert pump.wait(120) == 75
