"""A client's program: a process that speaks the line protocol and is kept for many schedules.

It has a process group of its own, which is stopped, resumed and killed as one. The guard
(guard.py) ends the groups if this process is killed.
"""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from fencepost.hunt.live.clocks import Clock, OfProgram, Waits
from fencepost.hunt.live.rest import Rest
from fencepost.hunt.sim.unknown import Unknown
from fencepost.hunt.sim.world import NEVER
from fencepost.workloads.client.succession_file import SUCCESSION

VERSIONS = (1, 2)
"""The versions of the line protocol: 2 has `reset` (docs/protocol.md)."""
ONE_THREAD = {"GOMAXPROCS": "1"}
"""Go's runtime otherwise hands each message from thread to thread, which takes twice the processor
time. Its goroutines take turns in any case: time stands still while one of them is at work."""
_LAST_WORDS = 3000
_LONGEST = 1 << 20


@dataclass(frozen=True)
class Command:
    """How to start a client: its words, the folder in which it runs, and variables to add."""

    words: tuple[str, ...]
    folder: Path
    env: Mapping[str, str]


class Faulty(Exception):
    """The program itself is faulty, not the lock that it calls."""


class Program:
    """A running program.

    `hear(message)` receives each line of its output. `version`: of the protocol; 0 before it is
    ready. `awaited`: the number of its missing answers to `setup` and `reset`. `elects`: it is an
    elector, which can step down if it `resigns`. `clock`: its clocks, if they can be set.
    `ahead_ns`: how far earlier runs have left them ahead of the real ones. `reads_real`: it reads
    the real ones all the same, by a system call.
    """

    def __init__(self, command: Command, hear: Callable[[dict[str, Any]], None]) -> None:
        self._hear = hear
        self._rest = b""
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  # closed by `close`
        self.version = 0
        self.awaited = 0
        self.extends = self.resigns = True
        self.elects = self.reads_real = False
        self.promises: list[str] | None = None
        self.stopped = self.dead = False
        self.clock: Clock | None = None
        self.ahead_ns = 0
        self._timeouts: Waits | None = None
        try:
            self._process = subprocess.Popen(
                command.words, cwd=command.folder,
                env={**ONE_THREAD, **os.environ, SUCCESSION: os.devnull, **command.env},
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors,
                start_new_session=True, bufsize=0,
            )  # fmt: skip
        except OSError as error:
            self._errors.close()
            raise Unknown(
                f"its program cannot be started: {error.strerror}: {command.words[0]}"
            ) from error
        assert self._process.stdout is not None
        self.output = self._process.stdout.fileno()
        self._resting = Rest(self.pid)
        os.set_blocking(self.output, False)

    @property
    def pid(self) -> int:
        return self._process.pid

    def tell(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self.poke()
        with suppress(BrokenPipeError):  # the end of its output says so
            self._process.stdin.write(msgspec.json.encode(message) + b"\n")

    def is_at(self, pid: int, clock: OfProgram) -> None:
        """Note which process of its group does the work: behind a shell it is another one, and
        behind `env` another program."""
        with suppress(OSError):
            if os.getpgid(pid) == self.pid:
                self._resting.close()
                self._resting = Rest(pid)
                self.clock = clock(pid)
                if self.clock is not None and self.clock.jumps:
                    self._timeouts = self.clock.waits(self._resting)

    def poke(self, wakes: bool = True) -> None:
        """Look at its threads again: it gets something. `wakes`: it surely waits for this."""
        if self._timeouts is not None:
            self._timeouts.poke(wakes)

    def waits(self) -> bool:
        """Whether it does nothing until something happens."""
        if self.dead or self.stopped:
            return True
        return (self._timeouts or self._resting).waits()

    def works(self) -> bool:
        """Whether some thread of it has something to do, or waits for the processor."""
        return not (self.dead or self.stopped) and self._resting.works()

    def wakes_ns(self, now: int) -> int | None:
        """Return until when it waits, in ns of the run, if nothing happens; None: it is at work."""
        if self.dead or self.stopped or self._timeouts is None:
            return NEVER
        return self._timeouts.earliest(now)

    def wake(self, now: int) -> None:
        """Let it look at its clock, because a timeout has ended by this time of the run."""
        assert self._timeouts is not None
        self._timeouts.end(now)

    @property
    def hurries(self) -> bool:
        """Whether none of its timed waits ends by itself, so that it hurries between two runs."""
        return self.clock is not None and self.clock.hurries

    def hurry(self) -> None:
        """End its timed waits whose time has come by clocks that run; while it makes a new lock,
        let its time jump to the end of the next one."""
        clock, waits = self.clock, self._timeouts
        if clock is None or waits is None or not clock.hurries or self.stopped or self.dead:
            return
        really = time.monotonic_ns()
        shown = really + self.ahead_ns
        if self.awaited and self.waits():
            until = waits.earliest(shown)
            if until is not None and shown < until < NEVER:
                self.ahead_ns += until - shown
                shown = until
                clock.run(shown, really)
        waits.end(shown)

    def worked_s(self) -> float:
        """Return the processor time that it has taken."""
        return self._resting.worked_s()

    def readable(self) -> bool:
        """Read its output; return False at its end. Raises Faulty if it is no line of the
        protocol."""
        try:
            data = os.read(self.output, 1 << 16)
        except BlockingIOError:
            return True
        if not data:
            return False
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._hear(_message(line))
        if len(self._rest) > _LONGEST:
            raise Faulty("it wrote a line of more than 1 MiB")
        return True

    def forget_errors(self) -> None:
        """Drop its standard error so far."""
        with suppress(OSError):
            os.ftruncate(self._errors.fileno(), 0)
            os.lseek(self._errors.fileno(), 0, os.SEEK_SET)

    @property
    def last_words(self) -> str:
        """Return the last line that it wrote to standard error, after a colon; "" if none."""
        size = os.fstat(self._errors.fileno()).st_size
        text = os.pread(self._errors.fileno(), _LAST_WORDS, max(0, size - _LAST_WORDS))
        lines = [line.strip() for line in text.decode(errors="replace").splitlines()]
        errors = [line for line in lines if "Error" in line] or [line for line in lines if line]
        return f": {errors[-1]}" if errors else ""

    def stop(self) -> None:
        """Stop all its threads, and wait until they have stopped."""
        self.stopped = True
        with suppress(ProcessLookupError, ChildProcessError):
            os.killpg(self.pid, signal.SIGSTOP)
            os.waitid(os.P_PID, self.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def resume(self) -> None:
        self.stopped = False
        self.poke()
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGCONT)

    def exit_code(self) -> int:
        """Wait until it has ended, and return its exit code."""
        return self._process.wait()

    def strike(self) -> None:
        """Kill it with all its children, as a fault does."""
        self.dead = True
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)

    def last_messages(self) -> list[dict[str, Any]]:
        """Return the messages that it wrote before it was killed and that are still unread."""
        self._process.wait()
        data = self._rest
        with suppress(BlockingIOError):
            while more := os.read(self.output, 1 << 16):
                data += more
        *lines, self._rest = data.split(b"\n")
        return [_message(line) for line in lines]

    def close(self) -> None:
        """Kill it, and close its pipes."""
        self.strike()
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.wait()
        with suppress(OSError):
            self._process.stdin.close()
        self._process.stdout.close()
        self._resting.close()
        self._errors.close()
        if self.clock is not None:
            self.clock.close()
        if self._timeouts is not None:
            self._timeouts.close()


def _message(line: bytes) -> dict[str, Any]:
    try:
        found = msgspec.json.decode(line)
    except msgspec.DecodeError:
        found = None
    if not isinstance(found, dict):
        shown = line[:80].decode(errors="replace")
        raise Faulty(
            f"it wrote {shown!r}, which is no line of the protocol (docs/protocol.md): standard "
            "output is for events, and standard error for everything else"
        )
    return found
