"""The event loop of a user lock whose verbs are coroutines (docs/your-lock.md, asyncio).

It runs in a thread of its own for as long as the client lives, so that tasks that the lock starts
continue between its calls. A policy that the user's file sets, for example uvloop's, chooses its
kind.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

VERBS = ("acquire", "extend", "release", "close", "__init__")
_CLOSE_S = 5.0


def is_async(lock: object) -> bool:
    """Return whether any verb of a lock, or of its class, is a coroutine function."""
    found = (getattr(lock, verb, None) for verb in VERBS)
    return inspect.iscoroutinefunction(lock) or any(map(inspect.iscoroutinefunction, found))


class EventLoop:
    """Runs an event loop. `lend`: see Env."""

    def __init__(self, lend: Callable[[int | None], None]) -> None:
        self._lend = lend
        self._running: _Call | None = None
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="loop", daemon=True)
        self._thread.start()

    def call(self, do: Callable[..., Any], *args: Any, **options: Any) -> Any:
        """Call a function in the loop, await its result if it has to be awaited, and return it."""
        self._lend(self._thread.ident)
        self._running = running = _Call()
        try:
            return self._run(_awaited(running, do, *args, **options)).result()
        finally:
            self._running, running.over = None, True
            self._lend(None)

    def cancel(self, then: Callable[[], None]) -> bool:
        """Cancel the running call at one of its awaits, as asyncio.timeout does, and call `then` in
        the loop if it was still running. Return False if no call has begun. Any thread may call
        this."""
        running = self._running
        if running is not None:
            self._loop.call_soon_threadsafe(self._cancel, running, then)
        return running is not None

    def _cancel(self, running: _Call, then: Callable[[], None]) -> None:
        task = running.task
        if task is None and not running.over:
            self._loop.call_soon(self._cancel, running, then)
        elif task is not None and not task.cancelling() and task.cancel():
            then()

    def close(self) -> None:
        """Cancel all tasks, and end the loop and its thread. A task that does not end in time is
        left."""
        self._run(_cancelled()).exception(_CLOSE_S)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_CLOSE_S)

    def _run(self, coroutine: Any) -> Future[Any]:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop)


@dataclass
class _Call:
    """A call. `task`: once it has begun. `over`: its caller has its answer."""

    task: asyncio.Task[Any] | None = None
    over: bool = False


async def _awaited(running: _Call, do: Callable[..., Any], *args: Any, **options: Any) -> Any:
    running.task = asyncio.current_task()
    found = do(*args, **options)
    return await found if inspect.isawaitable(found) else found


async def _cancelled() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    if others:
        await asyncio.wait(others, timeout=_CLOSE_S / 2)
