"""Implements a Remote with an agent: a program on the node that answers each JSON line with one.

A subclass defines how to start a program on the node (`spawn`); this file does the rest.
"""

from __future__ import annotations

import base64
import json
import queue
import signal
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from fencepost.harness.lines import Lines, TooLong
from fencepost.harness.remote.cutoff import cut_off
from fencepost.harness.remote.remote import NoAnswer, Program, RemoteError, Result
from fencepost.node.places import PROGRAM_PATH

AGENT = (PROGRAM_PATH, "agent")

_SLACK_S = 10.0
# A line of this size fits into an empty pipe, so that writing it does not block.
_FITS = 16 << 10
_END_S = 2.0
# Maximum length of an answer. The largest is a server's log (servers/serverlog.py), in base64.
_LONGEST = 64 << 20
# A node answers requests one at a time. After this many lines without a request it is not read.
_UNASKED = 100
# Maximum number of chunks that are read of an ended agent's standard error.
_WORDS = 16
# These signals can be sent twice: the effect and the answer are the same.
_HARMLESS = (0, signal.SIGSTOP, signal.SIGCONT)


class AgentRemote(ABC):
    """A Remote that starts its agent on first use, and again if it has ended."""

    def __init__(self, node: str) -> None:
        self.node = node
        self._lock = threading.Lock()
        self._agent: _Agent | None = None

    @abstractmethod
    def spawn(self, argv: Sequence[str]) -> Program:
        """Start a program on the node. Raises OSError or RemoteError if it cannot be reached."""

    def begin(self) -> None:
        """Start the agent without waiting for it; the first request reports an error."""
        with self._lock, suppress(OSError):
            if self._agent is None:
                self._agent = _Agent(self.spawn(AGENT))

    def run(self, argv: Sequence[str], *, timeout_s: float = 10.0, check: bool = True) -> Result:
        request = {"run": list(argv), "timeout_s": timeout_s}
        answer = self._ask(request, " ".join(argv)[:200], timeout_s=timeout_s)
        result = Result(answer["code"], answer["out"], answer["err"])
        if check and result.code:
            output = (result.err or result.out).strip()[-500:]
            raise RemoteError(
                f"{self.node}: {' '.join(argv)[:200]}: exit code {result.code}: {output}"
            )
        return result

    def put(self, path: str, content: bytes) -> None:
        encoded = base64.b64encode(content).decode()
        self._ask({"put": path, "content": encoded}, f"write {path}", again=True)

    def get(self, path: str) -> bytes:
        answer = self._ask({"get": path}, f"read {path}", again=True)
        return base64.b64decode(answer["content"])

    def signal(self, pid: int, number: int, started: str | None = None) -> bool:
        what = f"kill -{int(number)} {pid}"
        request = {"signal": pid, "number": int(number), "started": started}
        there: bool = self._ask(request, what, again=number in _HARMLESS)["there"]
        return there

    def state(self, pid: int, started: str | None = None) -> str | None:
        request = {"state": pid, "started": started}
        letter: str | None = self._ask(request, f"state of {pid}", again=True)["state"]
        return letter

    def close(self) -> None:
        with self._lock:
            self._drop()

    def _drop(self) -> None:
        if self._agent is not None:
            self._agent.close()
            self._agent = None

    def _ask(
        self, request: dict[str, Any], what: str, *, again: bool = False, timeout_s: float = 5.0
    ) -> dict[str, Any]:
        line = json.dumps(request).encode() + b"\n"
        with self._lock:
            try:
                answer = self._once(line, timeout_s)
            except _Lost as error:
                if not again:
                    raise NoAnswer(f"{self.node}: {what}: the connection was lost, so whether "
                                   f"this was done is unknown: {error}") from error  # fmt: skip
                answer = self._last(line, timeout_s, what)
            except (OSError, ValueError) as error:
                raise self._silent(what, error) from error
        if "error" in answer:
            raise RemoteError(f"{self.node}: {what}: {answer['error']}")
        return answer

    def _last(self, line: bytes, timeout_s: float, what: str) -> dict[str, Any]:
        try:
            return self._once(line, timeout_s)
        except (OSError, ValueError, _Lost) as error:
            raise self._silent(what, error) from error

    def _silent(self, what: str, error: Exception) -> NoAnswer:
        return NoAnswer(f"{self.node}: {what}: the node does not answer: {error}")

    def _once(self, line: bytes, timeout_s: float) -> dict[str, Any]:
        # An agent that ended between two requests has not begun this one.
        if self._agent is not None and self._agent.over:
            self._drop()
        fresh = self._agent is None
        if self._agent is None:
            self._agent = _Agent(self.spawn(AGENT))
        try:
            return self._agent.exchange(line, timeout_s + _SLACK_S)
        except _Lost as error:
            words = self._agent.last_words()
            self._drop()
            if fresh and words:
                # The agent does not start, so a retry would fail too.
                raise OSError(words) from error
            raise _Lost(words or str(error)) from error
        except (OSError, ValueError):
            self._drop()
            raise


class _Lost(Exception):
    """The agent or its connection ended before it answered."""


class _Agent:
    """A running agent. A thread reads its lines, because its stream has no read with a timeout."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._answers: queue.SimpleQueue[bytes | TooLong | None] = queue.SimpleQueue()
        self.over = False
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._program.stdout
        lines = Lines(_LONGEST)
        try:
            while self._answers.qsize() < _UNASKED and (
                chunk := self._program.stdout.read(1 << 16)
            ):
                for line in lines.take(chunk):
                    self._answers.put(line)
        except (OSError, ValueError):
            pass  # closed from here
        self.over = True
        self._answers.put(None)

    def exchange(self, line: bytes, timeout_s: float) -> dict[str, Any]:
        """Send a request; return its answer. Raise _Lost, TimeoutError, or ValueError (no JSON)."""
        assert self._program.stdin
        end = time.monotonic() + timeout_s
        if len(line) <= _FITS:
            self._send(line)
        else:
            with cut_off(self._program.kill, timeout_s) as late:
                try:
                    self._send(line)
                except _Lost:
                    if late.is_set():
                        raise TimeoutError(f"it read nothing for {timeout_s:.0f} s") from None
                    raise
        try:
            answer = self._answers.get(timeout=max(0.0, end - time.monotonic()))
        except queue.Empty:
            raise TimeoutError(f"no answer within {timeout_s:.0f} s") from None
        if answer is None:
            raise _Lost("its agent has ended")
        if isinstance(answer, TooLong):
            raise ValueError(
                f"its answer has {answer.length} bytes, and at most {_LONGEST} are read"
            )
        decoded: dict[str, Any] = json.loads(answer)
        return decoded

    def _send(self, line: bytes) -> None:
        assert self._program.stdin
        try:
            while line:
                line = line[self._program.stdin.write(line) or 0 :]
        except OSError as error:
            raise _Lost(str(error)) from error

    def last_words(self) -> str:
        """Return its output on standard error; empty if it still runs."""
        assert self._program.stderr
        self._reader.join(_END_S)
        if not self.over:
            return ""
        # In a thread, because a child of the agent may keep the stream open.
        said: list[bytes] = []
        listener = threading.Thread(target=self._listen, args=(said,), daemon=True)
        listener.start()
        listener.join(_END_S)
        return b"".join(said).decode(errors="replace").strip()[-300:]

    def _listen(self, said: list[bytes]) -> None:
        assert self._program.stderr
        with suppress(OSError, ValueError):  # closed from here
            while len(said) < _WORDS and (chunk := self._program.stderr.read(1 << 16)):
                said.append(chunk)

    def close(self) -> None:
        program = self._program
        assert program.stdin and program.stdout and program.stderr
        program.stdin.close()
        program.kill()
        program.wait()
        self._reader.join(_END_S)
        program.stdout.close()
        program.stderr.close()
