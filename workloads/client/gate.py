"""Runs a client's program in any language, and stops it at its messages.

    python -m fencepost.workloads.client.gate PROGRAM...

The program's requests and replies pass this process, on the client's node. So each of them is a
failpoint, as the steps of a client in Python are (steps.py). `number` gives it a number: before the
request, when the program waits for the reply, and before the reply. The connections to the servers
are those of this process, and faults of the network meet them there.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from fencepost.workloads.client.relay import Relay, Request
from fencepost.workloads.client.steps import before, connected

KINDS = 3
WAITS, REPLY = 1, 2
"""The offsets of the points at which the program waits for a reply, and before the reply."""
_LOOK_S = 0.002
"""Between two looks at a stopped program; how long to wait for requests that are sent at once."""
_CHUNK = 1 << 16
_EXITING = 0x4  # PF_EXITING, include/linux/sched.h
_KILLED = 1 << 8  # SIGKILL is signal 9


def number(place: int, server: int, servers: int) -> int:
    """Return the number of a request: how many the op has sent to this server before, the server's
    place, and how many servers there are, the storage included."""
    return 1 + KINDS * (place * servers + server)


class Gate:
    """Passes on the lines between a program and the harness, and its messages to its servers."""

    def __init__(self, program: subprocess.Popen[bytes]) -> None:
        assert program.stdin is not None and program.stdout is not None
        self._program = program
        self._out = program.stdout.fileno()
        os.set_blocking(self._out, False)
        self._relay = Relay(self._numbered, self._answered)
        self._servers = 0
        self._armed: set[str] = set()
        self._op = ""
        self._counts: Counter[int] = Counter()
        self._pid = program.pid
        self._asked = self._said = b""
        self._over = False

    def run(self) -> int:
        """Run until the program ends; return its exit code, as a shell does."""
        poll = self._relay.poll
        poll.register(0, select.POLLIN)
        poll.register(self._out, select.POLLIN)
        while not self._over:
            self._turn(None)
            while self._relay.asked and not self._over and self._turn(_LOOK_S):
                pass
            self._forward()
        code = self._program.wait()
        return code if code >= 0 else 128 - code

    def _turn(self, wait_s: float | None) -> bool:
        """Take new input; return whether there was any."""
        ready = self._relay.poll.poll(None if wait_s is None else wait_s * 1000)
        for fd, _ in ready:
            if fd == 0:
                self._hear()
            elif fd == self._out:
                self._pass_on()
            else:
                self._relay.take(fd)
        return bool(ready)

    # Lines.

    def _hear(self) -> None:
        """Take orders of the harness."""
        assert self._program.stdin is not None
        data = os.read(0, _CHUNK)
        if not data:
            self._relay.poll.unregister(0)
            with suppress(OSError):
                self._program.stdin.close()
        *lines, self._asked = (self._asked + data).split(b"\n")
        for line in filter(None, map(self._order, lines)):
            with suppress(OSError):  # its end is seen in its output
                self._program.stdin.write(line + b"\n")
                self._program.stdin.flush()

    def _order(self, line: bytes) -> bytes:
        """Return the line that the program receives for an order; b"" for none."""
        order: dict[str, Any] = json.loads(line)
        control, point = order.get("control"), str(order.get("point", ""))
        if control in ("arm", "disarm") and point.startswith("step-"):
            (self._armed.add if control == "arm" else self._armed.discard)(point)
            return b""
        if "f" in order:
            self._op, self._counts = order["f"], Counter()
        if "addresses" in order:
            names = [*order["servers"], order["storage"]]
            self._servers = len(names)
            opaque = order["storage"] if order.get("store") != "redis" else ""
            order["addresses"] |= self._relay.listen(names, order["addresses"], opaque)
            return json.dumps(order).encode()
        return line

    def _pass_on(self) -> None:
        """Pass on the output of the program."""
        try:
            data = os.read(self._out, _CHUNK)
        except BlockingIOError:
            return
        self._over = self._over or not data
        _say(data)
        *lines, self._said = (self._said + data).split(b"\n")
        for line in lines:
            self._note(line)

    def _note(self, line: bytes) -> None:
        try:
            event = json.loads(line)
            if event.get("control") == "ready":
                self._pid = int(event["pid"])
            elif event.get("type") != "invoke" and event.get("f") == self._op:
                self._op = ""
        except (ValueError, AttributeError, KeyError):
            return  # the harness reports the mistake

    # Messages.

    def _numbered(self, server: int) -> int:
        """Return the number of a request; 0 if it belongs to no op."""
        if not self._op:
            return 0
        self._counts[server] += 1
        return number(self._counts[server] - 1, server, self._servers)

    def _answered(self, request: int, pass_on: Callable[[], None]) -> None:
        if request:
            self._reach(before(request + REPLY), then=pass_on)
        else:
            pass_on()

    def _forward(self) -> None:
        """Send the requests that the program has made at once, in the order of its servers."""
        asked = sorted(self._relay.asked, key=lambda one: one.link.server)
        self._relay.asked.clear()
        for one in asked:
            if one.number and not self._admit(one):
                return
            self._relay.send(one)
        for one in asked:
            if one.number:
                self._reach(before(one.number + WAITS))

    def _admit(self, one: Request) -> bool:
        """Stop the program before a request if it is to; return whether it lives."""
        lives = self._reach(before(one.number))
        if lives and connected(one.number) in self._armed:
            one.link.await_open()
            lives = self._reach(connected(one.number), one.link.port)
        return lives

    def _reach(self, point: str, port: int = 0, then: Callable[[], None] = lambda: None) -> bool:
        """Stop the program here if this point is armed, until it is resumed; return whether it
        lives. `then` is called once it is stopped, or at once.

        Replies reach a stopped program's sockets, as they do without a gate. Otherwise a stop that
        is longer than the program's own time-out would end in a time-out.
        """
        if point not in self._armed:
            then()
            return True
        self._armed.discard(point)
        with suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGSTOP)
        while self._state() not in "TZ":
            time.sleep(_LOOK_S / 10)
        self._pass_on()
        about = {"port": port} if port else {}
        _say(json.dumps({"control": "point", "point": point, **about}).encode() + b"\n")
        then()
        while self._state() == "T":
            awaited = [] if any(map(_is_reply, self._armed)) else self._relay.awaited()
            for ready in select.select([0, *awaited], [], [], _LOOK_S)[0]:
                if ready:
                    self._relay.take(ready)
                else:
                    self._hear()
        return self._state() != "Z"

    def _state(self) -> str:
        """Return the state of the program's process; Z if it has ended, or is about to.

        A killed process wakes first: its state is R until it handles the signal. Source: proc(5),
        fields 3 (state), 9 (flags) and 31 (pending signals) of /proc/PID/stat.
        """
        try:
            with open(f"/proc/{self._pid}/stat", "rb") as file:
                fields = file.read().rpartition(b")")[2].split()
        except OSError:
            return "Z"
        state, flags, pending = fields[0].decode(), int(fields[6]), int(fields[28])
        ends = state == "X" or flags & _EXITING or pending & _KILLED
        return "Z" if ends else state


def _is_reply(point: str) -> bool:
    """Return whether a point is one before a reply."""
    kind, _, step = point.partition("step-")
    return not kind and step.isdigit() and (int(step) - 1) % KINDS == REPLY


def _say(data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(1, view) :]


def main(command: list[str]) -> int:
    program = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        return Gate(program).run()
    finally:
        program.kill()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
