"""The client of resources whose server asks the lock service itself (see server.py)."""

from __future__ import annotations

from typing import Any

from fencepost.workloads.contract.guard import Rule
from fencepost.workloads.contract.lock import Failed, Grant
from fencepost.workloads.contract.store import Opening, Store
from fencepost.workloads.resources.server import PORT
from fencepost.workloads.transport.request_link import dial

_CONNECT_S = 5.0


class ServedRegister:
    def __init__(self, at: Opening) -> None:
        host = at.env.address(at.storage)[0]
        self._link = (at.env.dial or dial)("lines", host, PORT, _CONNECT_S, at.timeout_s)
        self._guard = at.guard

    def read(self, resource: str) -> tuple[Any, int]:
        answer = self._ask({"read": resource})
        return answer["value"], int(answer["version"])

    def write(self, resource: str, value: Any, version: int, grant: Grant | None) -> int:
        self._guard.require(grant)
        assert grant is not None and grant.sequencer is not None
        key, revision = grant.sequencer
        request = {"write": resource, "value": value, "key": key, "revision": revision}
        return int(self._ask(request)["stored"])

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        answer: dict[str, Any] = self._link.call(request)
        if "refused" in answer:
            raise Failed("refused", str(answer["refused"]))
        return answer

    def close(self) -> None:
        self._link.close()


STORE = Store(
    "server",
    "a server that asks the lock service with each write, in front of a Redis",
    ServedRegister,
    server="fencepost.workloads.resources.server",
    rules={"check-sequencer": Rule()},
)
