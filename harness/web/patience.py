"""Bounds how long a client, or the file system of a run, keeps the server waiting."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from functools import partial
from threading import Thread
from typing import Any, TypeVar

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from uvicorn.protocols.http.auto import AutoHTTPProtocol

PATIENCE_S = 30.0
"""Time limit for an answer, and for a client to send its request."""
_MOST_STUCK = 64

T = TypeVar("T")


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

    async def do(self, request: Request, work: Callable[[], T]) -> T:
        """Return the result of the work. Raise HTTPException if it takes longer than
        `PATIENCE_S`."""
        address = str(request.url)
        self._stuck = {one: thread for one, thread in self._stuck.items() if thread.is_alive()}
        if address not in self._stuck and len(self._stuck) < _MOST_STUCK:
            done = Future[T]()
            thread = Thread(target=_carry_out, args=(work, done), daemon=True)
            thread.start()
            try:
                return await asyncio.wait_for(asyncio.wrap_future(done), PATIENCE_S)
            except TimeoutError:
                self._stuck[address] = thread
        raise HTTPException(503, f"The file system of {request.url.path} does not answer.")


def _carry_out(work: Callable[[], T], done: Future[T]) -> None:
    done.set_running_or_notify_cancel()  # a result that comes too late is dropped
    try:
        done.set_result(work())
    except BaseException as error:
        done.set_exception(error)
