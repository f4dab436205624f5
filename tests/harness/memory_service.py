"""The lock service that the clients of a cluster in memory share."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any


class Service:
    """A lock service and the store of resources, by one monotonic clock.

    `broken`: it grants a held lock. It calls `answers` before each op of a client, with its node
    and f: the function may block, or raise `Silent`. `written`: every write that was stored, as
    the resource and its value.
    """

    def __init__(self) -> None:
        self.broken = False
        # The promises that its clients' programs name, None for none.
        self.names: list[str] | None = None
        self.answers: Callable[[str, str], None] = lambda node, f: None
        self._held: dict[str, tuple[str, int]] = {}
        self._stored: dict[str, tuple[Any, int]] = {}
        self.written: list[tuple[str, Any]] = []
        self._lock = threading.Lock()

    def acquire(self, lock: str, hold: str, ttl_ns: int) -> int | None:
        """Return the end of the grant on CLOCK_MONOTONIC; None if another client holds the lock."""
        now = time.monotonic_ns()
        with self._lock:
            _, until = self._held.get(lock, ("", 0))
            if until > now and not self.broken:
                return None
            self._held[lock] = (hold, now + ttl_ns)
        return now + ttl_ns

    def release(self, lock: str, hold: str) -> bool:
        with self._lock:
            if self._held.get(lock, ("", 0))[0] != hold:
                return False
            del self._held[lock]
            return True

    def extend(self, lock: str, hold: str, ttl_ns: int) -> int | None:
        now = time.monotonic_ns()
        with self._lock:
            holder, until = self._held.get(lock, ("", 0))
            if holder != hold or until <= now:
                return None
            self._held[lock] = (hold, now + ttl_ns)
        return now + ttl_ns

    def wipe(self) -> None:
        """Forget grants and stored writes, like servers that start empty."""
        with self._lock:
            self._held, self._stored = {}, {}

    def read(self, resource: str) -> tuple[Any, int]:
        with self._lock:
            return self._stored.get(resource, (None, 0))

    def write(self, resource: str, value: Any) -> int:
        with self._lock:
            version = self._stored.get(resource, (None, 0))[1] + 1
            self._stored[resource] = (value, version)
            self.written.append((resource, value))
            return version


class Silent(Exception):
    """Raised by `Service.answers`: this op never gets an answer."""
