"""What every Remote does in the same way: it speaks to an agent that it has started on the node.

The agent (compose/node/agent.py) takes requests and gives results, a JSON line each. It stays, so
that a fault costs one line there and one back, and no new process or connection.
"""

from __future__ import annotations

import base64
import json
import selectors
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from harness.remote.remote import Program, RemoteError, Result

_SLACK_S = 10.0
AGENT = ("python3", "-u", "/opt/fencepost/agent.py")


class AgentRemote(ABC):
    """A node's agent, started when it is first needed, and again where it was lost.

    A request whose answer was lost with the connection is asked once more where that can do no
    harm: what reads, writes a whole file or sends a signal. A command is not: whoever ordered it
    learns that nobody knows whether it ran.
    """

    def __init__(self, node: str) -> None:
        self.node = node
        self._lock = threading.Lock()
        self._agent: Program | None = None
        self._rest = b""

    @abstractmethod
    def spawn(self, argv: Sequence[str]) -> Program: ...

    def run(self, argv: Sequence[str], *, timeout_s: float = 10.0, check: bool = True) -> Result:
        request = {"run": list(argv), "timeout_s": timeout_s}
        answer = self._ask(request, " ".join(argv)[:200], timeout_s)
        result = Result(answer["code"], answer["out"], answer["err"])
        if check and result.code:
            said = (result.err or result.out).strip()[-500:]
            raise RemoteError(
                f"{self.node}: {' '.join(argv)[:200]}: exit code {result.code}: {said}"
            )
        return result

    def put(self, path: str, content: bytes) -> None:
        encoded = base64.b64encode(content).decode()
        self._ask({"put": path, "content": encoded}, f"write {path}")

    def get(self, path: str) -> bytes:
        return base64.b64decode(self._ask({"get": path}, f"read {path}")["content"])

    def signal(self, pid: int, number: int) -> bool:
        there: bool = self._ask({"signal": pid, "number": number}, f"kill -{number} {pid}")["there"]
        return there

    def state(self, pid: int) -> str | None:
        letter: str | None = self._ask({"state": pid}, f"state of {pid}")["state"]
        return letter

    def close(self) -> None:
        with self._lock:
            self._drop()

    def _drop(self) -> None:
        agent, self._agent, self._rest = self._agent, None, b""
        if agent is None:
            return
        for stream in (agent.stdin, agent.stdout, agent.stderr):
            assert stream is not None
            stream.close()
        agent.kill()
        agent.wait()

    def _ask(self, request: dict[str, Any], what: str, timeout_s: float = 5.0) -> dict[str, Any]:
        line = json.dumps(request).encode() + b"\n"
        with self._lock:
            again = "run" not in request and self._agent is not None
            while True:
                try:
                    answer = self._exchange(line, timeout_s + _SLACK_S)
                    break
                except (OSError, EOFError, ValueError) as error:
                    self._drop()
                    if again and not isinstance(error, TimeoutError):
                        again = False
                        continue
                    raise RemoteError(
                        f"{self.node}: {what}: the node does not answer: {error}"
                    ) from error
        if "error" in answer:
            raise RemoteError(f"{self.node}: {what}: {answer['error']}")
        return answer

    def _exchange(self, line: bytes, timeout_s: float) -> dict[str, Any]:
        if self._agent is None:
            self._agent = self.spawn(AGENT)
        agent = self._agent
        assert agent.stdin and agent.stdout
        while line:
            line = line[agent.stdin.write(line) or 0 :]
        end = time.monotonic() + timeout_s
        with selectors.DefaultSelector() as selector:
            selector.register(agent.stdout, selectors.EVENT_READ)
            while b"\n" not in self._rest:
                if not selector.select(end - time.monotonic()):
                    raise TimeoutError(f"no answer within {timeout_s:.0f} s")
                chunk = agent.stdout.read(65536)
                if not chunk:
                    raise EOFError(_last_words(agent))
                self._rest += chunk
        answer, self._rest = self._rest.split(b"\n", 1)
        decoded: dict[str, Any] = json.loads(answer)
        return decoded


def _last_words(agent: Program) -> str:
    assert agent.stderr
    said = (agent.stderr.read(65536) or b"").decode(errors="replace").strip()
    return said[-300:] or "its agent has ended"
