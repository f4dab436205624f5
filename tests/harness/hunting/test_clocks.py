"""Whose clocks a hunt sets: those of programs whose waits last as long as they say all the same."""

from __future__ import annotations

import os
import shutil
import signal
import struct
import subprocess
import sys
import time

import pytest

from fencepost.harness.hunting import interrupt
from fencepost.harness.hunting.clocks import ProgramClocks, is_of_go, of_program
from fencepost.hunt.live.rest import Rest
from fencepost.hunt.sim.world import MS
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


WAITS = {
    "sleep": "Thread.sleep(60_000)",
    "object": "synchronized (o) { o.wait(60_000); }",
    "park": "LockSupport.parkNanos(60_000_000_000L)",
    "latch": "new CountDownLatch(1).await(60, TimeUnit.SECONDS)",
    "selector": "try (Selector one = Selector.open()) { one.select(60_000); }",
    "socket": "try { socket.getInputStream().read(); } catch (SocketTimeoutException e) { }",
}
"""Waits of the JVM for a minute."""
LONG = """
import java.net.*;
import java.nio.channels.Selector;
import java.util.concurrent.*;
import java.util.concurrent.locks.LockSupport;
public class Long {
    public static void main(String[] arguments) throws Exception {
        Object o = new Object();
        ServerSocket server = new ServerSocket(0);
        Socket socket = new Socket(server.getInetAddress(), server.getLocalPort());
        socket.setSoTimeout(60_000);
        int read;
        while ((read = System.in.read()) > 0) {
            if (read == '\\n') continue;
            long begun = System.nanoTime();
            switch (read) {
CASES
            }
            System.out.println((System.nanoTime() - begun) / 1_000_000);
        }
    }
}
"""


@pytest.mark.skipif(not (shutil.which("java") and interrupt.CAN), reason="needs java, and x86-64")
@pytest.mark.parametrize("stopped", [False, True], ids=["undisturbed", "stopped"])
def test_each_wait_of_the_jvm_ends_when_its_clocks_jump_to_its_end(tmp_path, stopped):
    cases = "\n".join(
        f"                case '{number}': {{ {code}{'' if code.endswith('}') else ';'} break; }}"
        for number, code in enumerate(WAITS.values())
    )
    (tmp_path / "Long.java").write_text(LONG.replace("CASES", cases))
    with subprocess.Popen(
        ["java", str(tmp_path / "Long.java")],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0,
    ) as java:  # fmt: skip
        java.stdin.write(b"x\n")
        java.stdout.readline()
        clocks = of_program(java.pid)
        assert clocks is not None and clocks.jumps
        waits, now = clocks.waits(Rest(java.pid)), 0
        base_ns = time.monotonic_ns()
        for number, name in enumerate(WAITS):
            clocks.stand(base_ns + now)
            java.stdin.write(f"{number}\n".encode())
            until = now + 60_000 * MS
            while waits.earliest(now) != until:
                time.sleep(0.01)
            if stopped:
                java.send_signal(signal.SIGSTOP)
                os.waitid(os.P_PID, java.pid, os.WSTOPPED)
                java.send_signal(signal.SIGCONT)
                while waits.earliest(now) != until:
                    time.sleep(0.01)
            # Not a moment before.
            now = until - MS
            clocks.stand(base_ns + now)
            waits.end(now)
            assert waits.earliest(now) == until
            now = until
            clocks.stand(base_ns + now)
            waits.end(now)
            assert java.stdout.readline() == b"60000\n", name
        waits.close()
        clocks.close()
        java.kill()
