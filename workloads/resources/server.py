"""Resources that ask the lock service before they accept a write (Chubby's CheckSequencer).

    python -m fencepost.workloads.resources.server ADDRESS PORT REDIS_PORT HOST:PORT...

Runs on the storage node in front of its Redis, listens on that node's address only, and knows the
etcd servers. One JSON object per line: `{"read": NAME}` is answered by `{"value", "version"}`, and
a write, `{"write": NAME, "value", "key", "revision"}`, by `{"stored"}`; a refusal by `{"refused":
why}`. Requests are handled one at a time, so that no other comes between the check of the sequencer
and the write; the lock itself may still be lost in that fraction of a millisecond, as Chubby's
paper accepts.
"""

from __future__ import annotations

import json
import socketserver
import sys
import threading
import time
from typing import Any

from fencepost.workloads.contract.lock import Failed, Link
from fencepost.workloads.resources.guards import none
from fencepost.workloads.resources.redis_register import key, write_script
from fencepost.workloads.transport.etcd_gateway import Gateway

PORT = 7000
ASK_S = 1.0
_STORE_S = 5.0
_WRITE = write_script(none.GUARD.rules["lua"])


class Store:
    """Answers one request at a time. `link` is to its Redis, `gateway` to the lock service."""

    def __init__(self, link: Link, gateway: Gateway) -> None:
        self._link = link
        self._gateway = gateway

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        try:
            return self._write(request) if "write" in request else self._read(request)
        except Failed as error:
            return {"refused": error.text}

    def _read(self, request: dict[str, Any]) -> dict[str, Any]:
        value, version = self._link.call("HMGET", key(request["read"]), "value", "version")
        return {"value": value, "version": int(version or 0)}

    def _write(self, request: dict[str, Any]) -> dict[str, Any]:
        created = self._gateway.created(request["key"])
        if created != request["revision"]:
            now = f"it was created at {created}" if created else "it is gone"
            return {"refused": f"{request['key']} of revision {request['revision']}: {now}"}
        _, version = self._link.call(
            *("EVAL", _WRITE, 1, key(request["write"])),
            *(none.GUARD.name, request["value"], "", "", ""),
        )
        return {"stored": int(version)}


class _Handler(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        server = self.server
        assert isinstance(server, _Server)
        for line in self.rfile:
            with server.one:
                answer = server.store.answer(json.loads(line))
            self.wfile.write(json.dumps(answer).encode() + b"\n")


class _Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
    store: Store
    one: threading.Lock


def main(arguments: list[str]) -> None:
    # Imported here, so that reading the port does not load a client of Redis.
    from fencepost.workloads.transport.redis_link import RedisLink

    own, port, redis_port, *etcd = arguments
    addresses = [(host, int(number)) for host, _, number in (a.partition(":") for a in etcd)]
    with _Server((own, int(port)), _Handler) as server:
        link = RedisLink("127.0.0.1", int(redis_port), _STORE_S)
        server.store = Store(link, Gateway(addresses, ASK_S, time.monotonic_ns))
        server.one = threading.Lock()
        server.serve_forever()


if __name__ == "__main__":
    main(sys.argv[1:])
