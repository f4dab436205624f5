"""A Remote into a container: an agent inside it, spoken to over one `docker exec`."""

from __future__ import annotations

import base64
import json
import selectors
import subprocess
import threading
import time
from collections.abc import Sequence
from typing import Any

from harness.remote.remote import RemoteError, Result

_SLACK_S = 10.0


class DockerRemote:
    """`container` is the container's name or id; it is opened when first used."""

    def __init__(self, node: str, container: str) -> None:
        self.node = node
        self.container = container
        self._lock = threading.Lock()
        self._agent: subprocess.Popen[bytes] | None = None
        self._rest = b""

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

    def spawn(self, argv: Sequence[str]) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            ["docker", "exec", "-i", self.container, *argv],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            # Ctrl-C is for the harness, which ends its programs in order.
            start_new_session=True,
        )

    def close(self) -> None:
        with self._lock:
            self._drop()

    def _drop(self) -> None:
        agent, self._agent, self._rest = self._agent, None, b""
        if agent is None:
            return
        assert agent.stdin and agent.stdout and agent.stderr
        for stream in (agent.stdin, agent.stdout, agent.stderr):
            stream.close()
        agent.kill()
        agent.wait()

    def _ask(self, request: dict[str, Any], what: str, timeout_s: float = 5.0) -> dict[str, Any]:
        with self._lock:
            try:
                answer = self._exchange(json.dumps(request).encode() + b"\n", timeout_s + _SLACK_S)
            except (OSError, EOFError, ValueError) as error:
                self._drop()
                raise RemoteError(f"{self.node}: {what}: the node does not answer: {error}") from (
                    error
                )
        if "error" in answer:
            raise RemoteError(f"{self.node}: {what}: {answer['error']}")
        return answer

    def _exchange(self, line: bytes, timeout_s: float) -> dict[str, Any]:
        if self._agent is None:
            self._agent = self.spawn(["python3", "-u", "/opt/fencepost/agent.py"])
        agent = self._agent
        assert agent.stdin and agent.stdout
        view = memoryview(line)
        while view:
            view = view[agent.stdin.write(view) :]
        end = time.monotonic() + timeout_s
        with selectors.DefaultSelector() as selector:
            selector.register(agent.stdout, selectors.EVENT_READ)
            while b"\n" not in self._rest:
                if not selector.select(end - time.monotonic()):
                    raise TimeoutError(f"no answer within {timeout_s:.0f} s")
                chunk = agent.stdout.read(65536)
                if not chunk:
                    raise EOFError(self._last_words(agent))
                self._rest += chunk
        answer, self._rest = self._rest.split(b"\n", 1)
        decoded: dict[str, Any] = json.loads(answer)
        return decoded

    @staticmethod
    def _last_words(agent: subprocess.Popen[bytes]) -> str:
        assert agent.stderr
        said = agent.stderr.read().decode(errors="replace").strip()
        return said[-300:] or "its agent has ended"
