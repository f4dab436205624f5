"""Start a process whose clocks a test skews, and read the time that it sees."""

from __future__ import annotations

import json
import subprocess
import sys
import time

# Answers each line with the time that it sees and the number of SIGUSR1 signals so far.
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
    """A process that reports the time that it sees."""

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
        """Return each clock's offset from this process, in seconds, and the other values unchanged.

        Repeat until an answer arrives at once, because any delay would count as an offset.
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
