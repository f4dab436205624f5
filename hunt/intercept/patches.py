"""Replaces Python's sockets, clocks, sleep, threads and random numbers.

The replacements are installed at the first use and stay. Each call checks where it comes from:
outside of a simulated client a replacement does what the original does. Names that a module has
imported (`from time import sleep`) are replaced as well, in all modules except Python's own and
fencepost's.
"""

from __future__ import annotations

import logging
import os
import queue
import random
import secrets
import select
import selectors
import socket
import sys
import threading
import time
import timeit
import uuid
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from concurrent.futures import thread as pools
from functools import cache
from importlib import metadata
from importlib.machinery import SourceFileLoader
from types import CodeType, ModuleType
from typing import Any

from fencepost.hunt.intercept import loops, numbers, readiness, sockets, threads
from fencepost.hunt.intercept.context import here
from fencepost.hunt.sim.client_node import ClientNode
from fencepost.hunt.sim.clock import EPOCH_NS, MONOTONIC_NS


def _clock(real: Callable[[], Any], zero_ns: int, in_s: bool) -> Callable[[], Any]:
    def clock() -> Any:
        place = here()
        if place is None:
            return real()
        ns = zero_ns + place.step()
        return ns / 1e9 if in_s else ns

    return clock


def _wall(real: Callable[[], Any], in_s: bool) -> Callable[[], Any]:
    def clock() -> Any:
        place = here()
        if place is None:
            return real()
        now, node = place.step(), place.task.node
        ns = node.clock.ns(now) if isinstance(node, ClientNode) else EPOCH_NS + now
        return ns / 1e9 if in_s else ns

    return clock


def _sleep(seconds: float) -> None:
    place = here()
    if place is None:
        _REAL_SLEEP(seconds)
        return
    if seconds < 0:
        raise ValueError("sleep length must be non-negative")
    place.step()
    place.world.sleep(round(seconds * 1e9))


_REAL_SLEEP = time.sleep
_REAL_SOCKET = socket.socket


class _SocketMeta(type):
    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, _REAL_SOCKET | sockets.Socket)

    def __subclasscheck__(cls, other: type) -> bool:
        return issubclass(other, _REAL_SOCKET)


class _Socket(_REAL_SOCKET, metaclass=_SocketMeta):
    """socket.socket; it creates a simulated socket in a simulated client."""

    def __new__(cls, *args: Any, **more: Any) -> Any:
        if here() is None:
            return _REAL_SOCKET(*args, **more)
        return sockets.Socket(*args[:3])


_REAL_LOCAL = threading.local


class _Local(_REAL_LOCAL):
    """threading.local, from which code may inherit."""

    def __new__(cls, *args: Any, **more: Any) -> Any:
        if cls is _Local:
            return _REAL_LOCAL() if here() is None else threads.Local()
        return super().__new__(cls, *args, **more)


def _either(real: Callable[..., Any], simulated: Callable[..., Any]) -> Callable[..., Any]:
    def chosen(*args: Any, **more: Any) -> Any:
        return real(*args, **more) if here() is None else simulated(*args, **more)

    return chosen


def _refuse(real: Callable[..., Any], name: str) -> Callable[..., Any]:
    def refused(*args: Any, **more: Any) -> Any:
        place = here()
        if place is None:
            return real(*args, **more)
        raise place.unknown(f"it calls {name}, which is not simulated")

    return refused


def _cpu_count() -> int:
    """Return a fixed number: thread pools size themselves by the machine's processors."""
    return 4


def _uuid1(node: int | None = None, clock_seq: int | None = None) -> uuid.UUID:
    return uuid.UUID(bytes=random.randbytes(16), version=1)


def _uuid4() -> uuid.UUID:
    return uuid.UUID(bytes=random.randbytes(16), version=4)


def _token_bytes(many: int | None = None) -> bytes:
    return random.randbytes(32 if many is None else many)


def _code(loader: SourceFileLoader, data: bytes, path: str, **more: Any) -> CodeType:
    return _compiled(data, path)


@cache
def _compiled(data: bytes, path: str) -> CodeType:
    return compile(data, path, "exec", dont_inherit=True)


def _places() -> Iterator[tuple[Any, str, Any]]:
    """Yield each owner, the name to replace in it, and the replacement."""
    for name in ("monotonic", "perf_counter"):
        for word, in_s in ((name, True), (f"{name}_ns", False)):
            yield time, word, _clock(getattr(time, word), MONOTONIC_NS, in_s)
    yield time, "time", _wall(time.time, True)
    yield time, "time_ns", _wall(time.time_ns, False)
    yield time, "sleep", _sleep
    yield threading, "_time", time.monotonic
    yield queue, "time", time.monotonic
    yield timeit, "default_timer", time.perf_counter
    yield socket, "socket", _Socket
    yield socket, "getaddrinfo", _either(socket.getaddrinfo, sockets.address_info)
    yield socket, "gethostbyname", _either(socket.gethostbyname, sockets.host_address)
    yield socket, "socketpair", _either(socket.socketpair, readiness.pair)
    yield select, "select", _either(select.select, readiness.select)
    yield selectors, "DefaultSelector", _either(selectors.DefaultSelector, readiness.Selector)
    yield from loops.places()
    for module, name in (
        (select, "poll"), (select, "epoll"), (os, "fork"), (os, "system"), (os, "popen"),
    ):  # fmt: skip
        if hasattr(module, name):
            yield module, name, _refuse(getattr(module, name), f"{module.__name__}.{name}")
    lock = _either(threading.Lock, threads.Lock)
    yield threading, "Lock", lock
    yield threading, "_allocate_lock", lock
    yield threading, "RLock", _either(threading.RLock, threading._PyRLock)  # type: ignore[attr-defined]
    yield threading, "get_ident", threads.ident
    yield threading, "local", _Local
    yield threading, "current_thread", threads.current
    yield threading.Thread, "start", threads.start
    yield threading.Thread, "join", threads.join
    yield threading.Thread, "is_alive", threads.is_alive
    for name in ("cpu_count", "process_cpu_count"):
        if hasattr(os, name):
            yield os, name, _either(getattr(os, name), _cpu_count)
    yield pools, "_global_shutdown_lock", threads.Own(pools._global_shutdown_lock)
    yield queue, "SimpleQueue", _either(queue.SimpleQueue, queue._PySimpleQueue)  # type: ignore[attr-defined]
    yield os, "urandom", _either(os.urandom, random.randbytes)
    yield random, "_urandom", _either(os.urandom, random.randbytes)
    yield uuid, "uuid1", _either(uuid.uuid1, _uuid1)
    yield uuid, "uuid4", _either(uuid.uuid4, _uuid4)
    # redis-py looks up its own version with every client, which reads and parses a file.
    yield metadata, "version", cache(metadata.version)
    # Each client imports the files of a user lock again; to compile them takes half of a run.
    yield SourceFileLoader, "source_to_code", _either(SourceFileLoader.source_to_code, _code)
    yield secrets, "token_bytes", _either(secrets.token_bytes, _token_bytes)


_replaced: dict[int, Any] = {}
_seen: set[str] = set()


def put() -> None:
    """Install the replacements, also in modules that were imported since the last call."""
    if not _replaced:
        # Tasks that fail or are destroyed are the code's under test, and their log has no reader.
        logging.getLogger("asyncio").setLevel(logging.CRITICAL + 1)
        warnings.filterwarnings("ignore", "coroutine .* was never awaited", RuntimeWarning)
        from redis import Redis  # slow to import, and only user locks need it

        for kind in (Redis, Future, threading.Thread):
            kind.__hash__ = numbers.number  # type: ignore[method-assign,assignment]
        for owner, name, stand_in in _places():
            real = getattr(owner, name)
            _replaced[id(real)] = (real, stand_in)
            setattr(owner, name, stand_in)
    for name in sys.modules.keys() - _seen:
        _seen.add(name)
        module = sys.modules[name]
        if isinstance(module, ModuleType) and not _leave_alone(name):
            for word, value in list(vars(module).items()):
                found = _replaced.get(id(value))
                if found is not None and found[0] is value:
                    setattr(module, word, found[1])


def _leave_alone(name: str) -> bool:
    top = name.partition(".")[0]
    return top in sys.stdlib_module_names or top in ("fencepost", "greenlet", "pytest", "_pytest")
