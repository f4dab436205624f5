"""A process whose clocks are to be skewed, and which tells what it sees of the time."""

from __future__ import annotations

import json
import subprocess
import sys
import time

# Answers a line with what it sees of the time, and how often SIGUSR1 has come.
TARGET = """
import ctypes, json, signal, struct, sys, threading, time

libc = ctypes.CDLL(None)
signals = 0


def count(number, frame):
    global signals
    signals += 1


def spin():
    while True:
        time.monotonic()


def gettimeofday():
    buffer = ctypes.create_string_buffer(16)
    libc.gettimeofday(buffer, None)
    second, micro = struct.unpack("qq", buffer.raw)
    return second + micro / 1e6


# Its threads pass each other the interpreter so often; by default it takes an answer half a second.
sys.setswitchinterval(0.0005)
signal.signal(signal.SIGUSR1, count)
libc.time.restype = ctypes.c_long
for _ in range(int(sys.argv[1])):
    threading.Thread(target=spin, daemon=True).start()
for line in sys.stdin:
    print(json.dumps({
        "wall": time.time(), "monotonic": time.monotonic(), "gettimeofday": gettimeofday(),
        "time": libc.time(None), "boot": time.clock_gettime(time.CLOCK_BOOTTIME),
        "coarse": time.clock_gettime(6), "cpu": time.process_time(), "signals": signals,
    }), flush=True)
"""


class Target:
    """A process that tells what it sees of the time."""

    def __init__(self, spinning: int = 0, command: tuple[str, ...] = ()) -> None:
        self.program = subprocess.Popen(
            [*command, sys.executable, "-c", TARGET, str(spinning)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.pid = self.program.pid
        self.seen()

    def seen(self) -> dict[str, float]:
        """Each clock's offset from ours, in seconds; the rest as it is.

        Asked until an answer comes at once: what it takes is all taken for an offset.
        """
        for _ in range(20):
            began = time.monotonic()
            found = self._asked()
            if time.monotonic() - began < 0.004:
                break
        return found

    def _asked(self) -> dict[str, float]:
        print(file=self.program.stdin, flush=True)
        answer = json.loads(self.program.stdout.readline())
        now = {
            "wall": time.time(),
            "monotonic": time.monotonic(),
            "gettimeofday": time.time(),
            "time": int(time.time()),
            "boot": time.clock_gettime(time.CLOCK_BOOTTIME),
            "coarse": time.clock_gettime(6),
        }
        return answer | {name: answer[name] - at for name, at in now.items()}

    def end(self) -> None:
        self.program.kill()
        self.program.wait()
