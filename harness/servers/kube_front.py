"""Serves an API server that speaks HTTPS and wants a token to clients that speak plain HTTP.

    front PORT BEHIND TOKEN ADDRESS...

It listens on PORT and opens a connection to the port BEHIND on loopback for each one that it
accepts. It adds the token to each request, and passes everything else on as it comes: answers, also
those that never end, and the end of either connection. If the API server cannot be reached, or its
connection fails, the client's connection is reset.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import struct
from collections.abc import AsyncIterator
from functools import partial

_END = b"\r\n\r\n"
_LONGEST_HEAD = 1 << 20
_CHUNK = 1 << 16
_TO_OPEN_S = 10.0
_RESET = struct.pack("ii", 1, 0)
"""SO_LINGER for 0 s: a close sends a reset."""


class Unreadable(Exception):
    """A request without a readable length."""


async def requests(reader: asyncio.StreamReader, token: str) -> AsyncIterator[bytes]:
    """Yield the bytes of a client's requests, with the token in each head.

    Raises:
        Unreadable: a head is too long, or names no length as a number.
    """
    while True:
        try:
            head = await reader.readuntil(_END)
        except asyncio.IncompleteReadError:
            return
        except asyncio.LimitOverrunError as error:
            raise Unreadable(str(error)) from error
        left = _length(head)
        yield head[:-2] + f"Authorization: Bearer {token}\r\n\r\n".encode()
        while left:
            body = await reader.read(min(left, _CHUNK))
            if not body:
                return
            left -= len(body)
            yield body


def _length(head: bytes) -> int:
    """Return the length of the body that follows this head."""
    found = 0
    for line in head.decode("latin-1").split("\r\n")[1:]:
        name, _, value = line.partition(":")
        match name.strip().lower():
            case "content-length" if value.strip().isdecimal():
                found = int(value)
            case "content-length" | "transfer-encoding":
                raise Unreadable(line)
    return found


def unverified() -> ssl.SSLContext:
    """Return how to speak to a server whose certificate is its own."""
    return ssl._create_unverified_context()


async def _serve(
    behind: int,
    token: str,
    secure: ssl.SSLContext | None,
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
) -> None:
    """Forward the bytes of a connection in both directions, until either side ends."""
    try:
        opened = asyncio.open_connection("127.0.0.1", behind, ssl=secure)
        answers, asks = await asyncio.wait_for(opened, _TO_OPEN_S)
    except (OSError, TimeoutError):
        _reset(writer)
        return
    ways = [
        asyncio.create_task(_ask(requests(reader, token), asks)),
        asyncio.create_task(_copy(answers, writer)),
    ]
    ended, others = await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
    for way in others:
        way.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    asks.transport.abort()
    if any(way.exception() for way in ended):
        _reset(writer)
    else:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


def _reset(writer: asyncio.StreamWriter) -> None:
    end = writer.get_extra_info("socket")
    end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    writer.transport.abort()


async def _ask(asked: AsyncIterator[bytes], writer: asyncio.StreamWriter) -> None:
    async for data in asked:
        writer.write(data)
        await writer.drain()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(_CHUNK):
        writer.write(data)
        await writer.drain()


async def listen(
    address: str, port: int, behind: int, token: str, secure: ssl.SSLContext | None
) -> asyncio.Server:
    """Listen and serve in the running loop. `secure`: how to speak TLS behind; None: without."""
    serve = partial(_serve, behind, token, secure)
    return await asyncio.start_server(serve, address, port, limit=_LONGEST_HEAD, backlog=128)


async def _run(port: int, behind: int, token: str, addresses: list[str]) -> None:
    secure = unverified()
    servers = [await listen(address, port, behind, token, secure) for address in addresses]
    await asyncio.gather(*(server.serve_forever() for server in servers))


def main(words: list[str]) -> None:
    port, behind, token, *addresses = words
    asyncio.run(_run(int(port), int(behind), token, addresses))
