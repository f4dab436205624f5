"""Drive a client's program line by line."""

from __future__ import annotations

import io
import json
import os
import select
import sys
import time
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import msgspec

from fencepost.workloads.client.wire import Setup

PROGRAM = [sys.executable, "-m", "fencepost.workloads.client.program"]
DEADLINE_S = 600.0
ACQUIRE = {"f": "acquire", "value": {"lock": "orders", "ttl": 10**9}}
WORK = {
    "control": "work",
    "settings": {"ttl_ns": 10**9, "write": False, "hold_ms": (0, 0), "think_ms": (0, 0)},
    "until_ns": 10**15,
}


def typed(setup: dict[str, Any]) -> Setup:
    """A setup's line, as the harness has it before it is written."""
    return msgspec.convert(setup, Setup, strict=False)


class Fed:
    """A Remote whose worker prints nothing: the test passes in its output."""

    node = "client-1"
    _into: int | None = None

    def spawn(self, argv: Sequence[str]) -> SimpleNamespace:
        out, self._into = os.pipe()
        stdout = os.fdopen(out, "rb", buffering=0)
        return SimpleNamespace(stdin=io.BytesIO(), stdout=stdout, stderr=io.BytesIO())

    def feed(self, output: bytes) -> None:
        assert self._into is not None
        os.write(self._into, output)

    def end(self) -> None:
        if self._into is not None:
            os.close(self._into)
            self._into = None


class Talk:
    """One program that a test drives line by line."""

    def __init__(self, program):
        self.program = program
        self._rest = b""

    def say(self, **message):
        self.program.stdin.write(json.dumps(message).encode() + b"\n")

    def hear(self):
        """Return the next line, or None at the end."""
        end = time.monotonic() + DEADLINE_S
        while b"\n" not in self._rest:
            ready, _, _ = select.select([self.program.stdout], [], [], end - time.monotonic())
            assert ready, "the program said nothing"
            chunk = self.program.stdout.read(65536)
            if not chunk:
                assert self._rest == b"", "a torn line"
                return None
            self._rest += chunk
        line, self._rest = self._rest.split(b"\n", 1)
        return json.loads(line)

    def hear_until(self, control):
        lines = [self.hear()]
        while lines[-1].get("control") != control:
            lines.append(self.hear())
        return lines

    def hear_all(self):
        return list(iter(self.hear, None))
