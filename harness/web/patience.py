"""Bounds how long a client, or the file system of a run, keeps the server waiting.

A download has a limit for each of its pieces, since a large file takes long as a whole.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from threading import Thread
from typing import Any, TypeVar

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Send
from uvicorn.protocols.http.auto import AutoHTTPProtocol

PATIENCE_S = 30.0
"""Time limit for an answer, and for a client to send its request."""
THREAD = "fencepost serve: answer"
"""Name of each thread that works for a request."""
_MOST_STUCK = 64

T = TypeVar("T")
_log = logging.getLogger("uvicorn.error")  # of the server, which says where its lines go


@dataclass(frozen=True)
class Download:
    """A response whose pieces are read one by one."""

    pieces: Iterator[bytes]
    kind: str
    headers: Mapping[str, str]


class Protocol(AutoHTTPProtocol):  # type: ignore[misc,valid-type]
    """HTTP that closes a connection on which no whole request arrives for `PATIENCE_S`."""

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self.loop.call_later(PATIENCE_S, self._look, None)

    def _look(self, before: Any) -> None:
        if self.cycle is before and (before is None or before.response_complete):
            self.transport.close()
        elif not self.transport.is_closing():
            self.loop.call_later(PATIENCE_S, self._look, self.cycle)


class Patient:
    """Answers each request in a thread of its own, since a file system that hangs may keep it.

    While it does, a further request for the same address is refused at once.
    """

    def __init__(self) -> None:
        self._stuck: dict[str, Thread] = {}

    def endpoint(self, answer: Callable[[Request], Response]) -> Callable[..., Awaitable[Response]]:
        async def asked(request: Request) -> Response:
            return await self.do(request, partial(answer, request))

        return asked

    def download(self, answer: Callable[[Request], Download]) -> Callable[..., Awaitable[Response]]:
        """As `endpoint`. The download ends at the first piece that takes too long."""

        async def asked(request: Request) -> Response:
            found = await self.do(request, partial(answer, request))
            # Before the response begins, so that it can still be a refusal.
            head = request.method == "HEAD"
            first = None if head else await self._next(request, found.pieces)
            return _Cut(
                self._from(request, first, found.pieces),
                media_type=found.kind, headers=found.headers,
            )  # fmt: skip

        return asked

    async def _from(
        self, request: Request, piece: bytes | None, more: Iterator[bytes]
    ) -> AsyncIterator[bytes]:
        while piece is not None:
            yield piece
            piece = await self._next(request, more)

    async def _next(self, request: Request, pieces: Iterator[bytes]) -> bytes | None:
        return await self.do(request, lambda: next(pieces, None))

    async def do(self, request: Request, work: Callable[[], T]) -> T:
        """Return the result of the work. Raise HTTPException if it takes longer than
        `PATIENCE_S`."""
        # A client that leaves cancels this, and the thread must be known as stuck nevertheless.
        return await asyncio.shield(self._do(request, work))

    async def _do(self, request: Request, work: Callable[[], T]) -> T:
        address = str(request.url)
        self._stuck = {one: thread for one, thread in self._stuck.items() if thread.is_alive()}
        if address not in self._stuck and len(self._stuck) < _MOST_STUCK:
            done = Future[T]()
            thread = Thread(target=_carry_out, args=(work, done), name=THREAD, daemon=True)
            thread.start()
            try:
                return await asyncio.wait_for(asyncio.wrap_future(done), PATIENCE_S)
            except TimeoutError:
                self._stuck[address] = thread
        raise HTTPException(503, f"The file system of {request.url.path} does not answer.")


class _Cut(StreamingResponse):
    """Stays incomplete if a piece cannot be read; the server then closes the connection."""

    async def stream_response(self, send: Send) -> None:
        try:
            await super().stream_response(send)
        except HTTPException as error:
            _log.error("A download ends before its end: %s", error.detail)


def _carry_out(work: Callable[[], T], done: Future[T]) -> None:
    done.set_running_or_notify_cancel()  # a result that comes too late is dropped
    try:
        done.set_result(work())
    except BaseException as error:
        done.set_exception(error)
