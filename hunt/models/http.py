"""Simulates the part of urllib3's pools that etcd's gateway uses, over simulated links."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from urllib3 import exceptions

from fencepost.hunt.sim.link import SimLink
from fencepost.hunt.sim.network import Network, Server
from fencepost.hunt.sim.world import Node
from fencepost.workloads.contract.lock import Failed, Indeterminate


@dataclass(slots=True)
class Response:
    """The answer to one request. `read1` returns all available data of a stream, then b"" at its
    end."""

    status: int
    data: bytes

    def read1(self, amount: int) -> bytes:
        data, self.data = self.data, b""
        return data

    def close(self) -> None: ...


class Pool:
    """Connections to one server, one for each request."""

    def __init__(self, network: Network, client: Node, server: Server) -> None:
        self.host = server.name
        self._network = network
        self._client = client
        self._server = server
        # Links whose last request was answered, so that none of its messages can arrive late.
        self._idle: list[SimLink] = []

    def request(
        self, method: str, url: str, *, body: bytes, timeout: Any, preload_content: bool = True
    ) -> Response:
        """Send a request and return the answer. Raises urllib3's exceptions, as its pools do."""
        connect_ns, read_ns = _times(timeout)
        if self._idle:
            link = self._idle.pop()
            link.wait_for(connect_ns)
        else:
            link = SimLink(self._network, self._client, self._server, connect_ns)
        try:
            link.send(url.removeprefix("/v3/"), body)
            link.wait_for(read_ns)
            status, data = link.receive()
        except Indeterminate as error:
            raise exceptions.ReadTimeoutError(None, url, error.text) from error  # type: ignore[arg-type]
        except Failed as error:
            raise exceptions.NewConnectionError(None, error.text) from error  # type: ignore[arg-type]
        finally:
            link.close()
        self._idle.append(link)
        return Response(status, data)

    def close(self) -> None: ...


@lru_cache(64)
def _times(timeout: Any) -> tuple[int, int]:
    """Return the timeouts for connecting and reading (ns)."""
    return round(timeout.connect_timeout * 1e9), round(timeout.read_timeout * 1e9)
