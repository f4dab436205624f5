"""Whose clocks a hunt sets: those of programs whose waits last as long as they say all the same."""

from __future__ import annotations

import shutil
import struct
import subprocess
import sys
import time

import pytest

from fencepost.harness.hunting.clocks import ProgramClocks, is_of_go, of_program
from fencepost.node.image import Refused

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs Linux"),
]
PYTHON = """
import sys, threading, time
for line in sys.stdin:
    time.sleep(0.2)
    print(line, flush=True)
"""
NODE = """
const lines = require('readline').createInterface({ input: process.stdin });
lines.on('line', (line) => { setTimeout(() => console.log(line), 200); });
"""
JAVA = """
public class Waits {
    public static void main(String[] arguments) throws Exception {
        int read;
        while ((read = System.in.read()) > 0) {
            if (read != '\\n') Thread.sleep(200);
            else System.out.println("done");
        }
    }
}
"""


class Waits:
    """A program that waits for 0.2 s before it answers a line."""

    def __init__(self, *command):
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
        )
        self.took_s()  # it has started

    def took_s(self):
        begun = time.monotonic()
        self.process.stdin.write(b"x\n")
        assert self.process.stdout.readline()
        return time.monotonic() - begun

    def took_behind_s(self):
        """Return how long it waits with clocks that stood still for half a second."""
        try:
            clocks = ProgramClocks(self.process.pid, jumps=False)
        except (OSError, Refused) as error:
            pytest.skip(f"its clocks cannot be set here: {error}")
        stood_ns = time.monotonic_ns()
        clocks.stand(stood_ns)
        time.sleep(0.5)
        clocks.run(stood_ns, time.monotonic_ns())
        return self.took_s()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()


def test_the_clocks_of_python_are_left_alone_because_its_sleeps_would_end_at_once():
    with Waits(sys.executable, "-c", PYTHON) as program:
        assert of_program(program.process.pid) is None
        assert program.took_behind_s() < 0.2


@pytest.mark.skipif(not shutil.which("node"), reason="needs node")
def test_a_timer_of_node_lasts_as_long_as_it_says_by_clocks_that_are_behind():
    with Waits("node", "-e", NODE) as program:
        assert program.took_behind_s() >= 0.19
        assert of_program(program.process.pid) is not None


@pytest.mark.skipif(not shutil.which("java"), reason="needs java")
def test_a_sleep_of_the_jvm_lasts_as_long_as_it_says_by_clocks_that_are_behind(tmp_path):
    (tmp_path / "Waits.java").write_text(JAVA)
    with Waits("java", str(tmp_path / "Waits.java")) as program:
        assert program.took_behind_s() >= 0.19
        assert of_program(program.process.pid) is not None


@pytest.mark.parametrize(("content", "of_go"), [(b"\xff Go buildinf:\x08", True), (b"GNU", False)])
def test_a_program_of_go_is_known_by_a_section(tmp_path, content, of_go):
    header = bytearray(64)
    header[:6] = b"\x7fELF\x02\x01"
    struct.pack_into("<Q", header, 0x28, 64 + 16)
    struct.pack_into("<HH", header, 0x3A, 64, 1)
    section = struct.pack("<IIQQQQIIQQ", 0, 1, 0, 0, 64, len(content), 0, 0, 1, 0)
    path = tmp_path / "program"
    path.write_bytes(bytes(header) + content.ljust(16, b"\0") + section)
    assert is_of_go(path) == of_go
    path.write_bytes(b"#!/bin/sh\n")
    assert not is_of_go(path)
