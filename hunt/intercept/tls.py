"""Lets TLS pass: a client that asks for it gets its connection as it is.

The simulated network has no listeners, so bytes go in clear. Certificates, names and versions are
not judged: every handshake succeeds, in no time.
"""

from __future__ import annotations

import asyncio
import ssl
from asyncio import selector_events
from collections.abc import Iterator
from typing import Any

from fencepost.hunt.intercept.context import here

_WRAP = ssl.SSLContext.wrap_socket
_TRANSPORT = selector_events.BaseSelectorEventLoop._make_ssl_transport  # type: ignore[attr-defined]
_START = asyncio.BaseEventLoop.start_tls


class Clear:
    """The methods of ssl.SSLSocket that a simulated socket lacks."""

    def do_handshake(self, block: bool = False) -> None:
        """Do nothing: each side trusts the other."""

    def unwrap(self) -> Clear:
        return self

    def pending(self) -> int:
        return 0

    def version(self) -> str:
        return "TLSv1.3"

    def cipher(self) -> tuple[str, str, int]:
        return "TLS_AES_256_GCM_SHA384", "TLSv1.3", 256

    def getpeercert(self, binary_form: bool = False) -> Any:
        return b"" if binary_form else {}

    def selected_alpn_protocol(self) -> None:
        """Return none."""


def _wrap_socket(context: Any, sock: Any, *args: Any, **more: Any) -> Any:
    return sock if isinstance(sock, Clear) else _WRAP(context, sock, *args, **more)


def _make_ssl_transport(
    loop: Any, rawsock: Any, protocol: Any, sslcontext: Any, waiter: Any = None, **more: Any
) -> Any:
    if here() is None:
        return _TRANSPORT(loop, rawsock, protocol, sslcontext, waiter, **more)
    extra, server = more.get("extra"), more.get("server")
    return loop._make_socket_transport(rawsock, protocol, waiter, extra=extra, server=server)


async def _start_tls(loop: Any, transport: Any, protocol: Any, sslcontext: Any, **more: Any) -> Any:
    if here() is None:
        return await _START(loop, transport, protocol, sslcontext, **more)
    transport.set_protocol(protocol)
    return transport


def places() -> Iterator[tuple[Any, str, Any]]:
    """Yield each owner, the name to replace in it, and the replacement (patches.py)."""
    yield ssl.SSLContext, "wrap_socket", _wrap_socket
    yield selector_events.BaseSelectorEventLoop, "_make_ssl_transport", _make_ssl_transport
    yield asyncio.BaseEventLoop, "start_tls", _start_tls
