"""Replaces Python's sockets, clocks, sleep, threads, random numbers and files.

The replacements are installed at the first use and stay. Each call checks where it comes from:
outside of a simulated client a replacement does what the original does. Names that a module has
imported (`from time import sleep`) are replaced as well, in all modules except Python's own and
fencepost's.
"""

from __future__ import annotations

import _thread
import atexit
import datetime
import logging
import os
import platform
import queue
import select
import selectors
import socket
import ssl
import sys
import threading
import uuid
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from concurrent.futures import thread as pools
from functools import cache
from importlib import metadata
from importlib.machinery import SourceFileLoader
from types import CodeType, FunctionType, ModuleType
from typing import Any

from fencepost.hunt.intercept import (
    chance,
    clocks,
    context,
    dates,
    files,
    loops,
    numbers,
    pipes,
    readiness,
    refused,
    sets,
    sockets,
    threads,
    tls,
)
from fencepost.hunt.intercept.context import either, here
from fencepost.hunt.sim.world import Node

try:
    import fcntl
except ImportError:  # on Windows
    fcntl = None  # type: ignore[assignment]

_REAL_PID = os.getpid
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


def _never(function: Callable[..., Any], *args: Any, **more: Any) -> Callable[..., Any]:
    """Replace atexit's functions: simulated processes do not exit, and this one has its own end."""
    return function


def _cpu_count() -> int:
    """Return a fixed number: thread pools size themselves by the machine's processors."""
    return _PROCESSORS


def _affinity(pid: int) -> set[int]:
    """Return all processors of `_cpu_count`, whichever the process is."""
    return set(range(_PROCESSORS))


def _pid() -> int:
    """Replace os.getpid: each client is a process."""
    place = here()
    return _REAL_PID() if place is None else _PIDS + place.task.node.index


def _node() -> Node:
    place = here()
    assert place is not None
    return place.task.node


def _host_name() -> str:
    return _node().name


def _uname(real: Callable[[], Any]) -> Callable[[], Any]:
    def uname() -> Any:
        found = real()
        return type(found)((found[0], _host_name(), *found[2:]))

    return uname


_PIDS, _PARENT, _PROCESSORS = 1000, 1, 4
_MAC = 0x020000000000
"""The network address of client 0."""


def _code(loader: SourceFileLoader, data: bytes, path: str, **more: Any) -> CodeType:
    return _compiled(data, path)


@cache
def _compiled(data: bytes, path: str) -> CodeType:
    return compile(data, path, "exec", dont_inherit=True)


def _places() -> Iterator[tuple[Any, str, Any]]:
    """Yield each owner, the name to replace in it, and the replacement."""
    yield from clocks.places()
    yield from chance.places()
    yield from dates.places()
    yield from files.places()
    yield socket, "socket", _Socket
    yield socket, "getaddrinfo", either(socket.getaddrinfo, sockets.address_info)
    yield socket, "gethostbyname", either(socket.gethostbyname, sockets.host_address)
    if fcntl is not None:
        yield fcntl, "fcntl", readiness.fcntl(fcntl.fcntl)
    yield atexit, "register", either(atexit.register, _never)
    yield atexit, "unregister", either(atexit.unregister, _never)
    yield socket, "socketpair", either(socket.socketpair, readiness.pair)
    yield select, "select", either(select.select, readiness.select)
    if hasattr(select, "poll"):
        yield select, "poll", either(select.poll, readiness.Poll)
    yield selectors, "DefaultSelector", either(selectors.DefaultSelector, readiness.Selector)
    if hasattr(select, "epoll"):
        yield select, "epoll", either(select.epoll, readiness.Epoll)
    yield from loops.places()
    yield from pipes.places()
    yield from refused.places()
    yield from tls.places()
    lock = either(threading.Lock, threads.Lock)
    yield threading, "Lock", lock
    yield threading, "_allocate_lock", lock
    yield threading, "RLock", either(threading.RLock, threads.RLock)
    yield threading, "get_ident", threads.ident
    yield threading, "local", _Local
    yield threading, "current_thread", threads.current
    yield threading, "_newname", threads.new_name(threading._newname)  # type: ignore[attr-defined]
    yield _thread, "interrupt_main", either(_thread.interrupt_main, threads.interrupt_main)
    yield threading.Thread, "start", threads.start
    yield threading.Thread, "join", threads.join
    yield threading.Thread, "is_alive", threads.is_alive
    for name in ("cpu_count", "process_cpu_count"):
        if hasattr(os, name):
            yield os, name, either(getattr(os, name), _cpu_count)
    if hasattr(os, "sched_getaffinity"):
        yield os, "sched_getaffinity", either(os.sched_getaffinity, _affinity)
    yield pools, "_global_shutdown_lock", threads.Own(pools._global_shutdown_lock)
    yield queue, "SimpleQueue", either(queue.SimpleQueue, queue._PySimpleQueue)  # type: ignore[attr-defined]
    yield os, "getpid", _pid
    yield os, "getppid", either(os.getppid, lambda: _PARENT)
    yield threading, "get_native_id", either(threading.get_native_id, threads.ident)
    yield socket, "gethostname", either(socket.gethostname, _host_name)
    yield platform, "node", either(platform.node, _host_name)
    yield uuid, "getnode", either(uuid.getnode, lambda: _MAC + _node().index)
    if hasattr(os, "uname"):
        yield os, "uname", either(os.uname, _uname(os.uname))
    # pg8000 makes one for each connection, which reads all certificates of the machine.
    context = ssl.create_default_context
    yield ssl, "create_default_context", either(context, cache(context))
    # redis-py looks up its own version with every client, which reads and parses a file.
    yield metadata, "version", cache(metadata.version)
    # Each client imports the files of a user lock again; to compile them takes half of a run.
    yield SourceFileLoader, "source_to_code", either(SourceFileLoader.source_to_code, _code)


_COUNTERS = (("asyncpg.connection", "_uid"),)
"""Modules of libraries, and the globals with which they count over all runs of a process."""


def restart_counters() -> None:
    """Let libraries count from 0, as in a new process: their requests have the numbers."""
    for name, counter in _COUNTERS:
        if name in sys.modules:
            setattr(sys.modules[name], counter, 0)


_THOROUGHLY = ("kazoo",)
"""Libraries whose classes and functions keep imported names, and that use the order of sets."""
_replaced: dict[int, Any] = {}
_seen: set[str] = set()
_latest = (0, "")
"""How many modules there were in the last call, and the name of the last."""


def put() -> None:
    """Install the replacements, also in modules that were imported since the last call."""
    global _latest
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
    # The loop below compares all names; an import adds one at the end.
    latest = len(sys.modules), next(reversed(sys.modules))
    if latest == _latest:
        return
    _latest = latest
    for name in sys.modules.keys() - _seen:
        _seen.add(name)
        module = sys.modules[name]
        if isinstance(module, ModuleType) and not _leave_alone(name):
            for word, value in list(vars(module).items()):
                if (stand_in := _stand_in(value)) is not value:
                    setattr(module, word, stand_in)
            if name.partition(".")[0] in _THOROUGHLY:
                _replace_within(module)


def _replace_within(module: ModuleType) -> None:
    """Replace the names that classes and functions of a module have kept: `sleep_func=time.sleep`
    as a default, or as an attribute of a class; and its sets by those that keep an order."""
    vars(module).setdefault("set", sets.OrderedSet)
    for thing in list(vars(module).values()):
        if getattr(thing, "__module__", "") != module.__name__:
            continue
        if isinstance(thing, FunctionType):
            _replace_defaults(thing)
        elif isinstance(thing, type):
            for word, value in list(vars(thing).items()):
                inner = value.__func__ if isinstance(value, staticmethod) else value
                if isinstance(inner, FunctionType):
                    _replace_defaults(inner)
                if (stand_in := _stand_in(inner)) is not inner:
                    is_static = isinstance(value, staticmethod)
                    setattr(thing, word, staticmethod(stand_in) if is_static else stand_in)


def _replace_defaults(function: FunctionType) -> None:
    if function.__defaults__ is not None:
        function.__defaults__ = tuple(map(_stand_in, function.__defaults__))


def _stand_in(value: Any) -> Any:
    """Return the replacement of a value, or the value itself."""
    found = _replaced.get(id(value))
    return found[1] if found is not None and found[0] is value else value


def load(module: str) -> None:
    """Import a library outside of the simulation, unless it is loaded.

    It sees the originals of the dates: pydantic looks up the types of fields by identity, and a
    model does not know the replacement of a type if pydantic was imported before.
    """
    if module in sys.modules:
        return
    present = {name: getattr(datetime, name) for _, name, _ in dates.places()}
    for name, stand_in in present.items():
        setattr(datetime, name, getattr(stand_in, "real", stand_in))
    try:
        context.load(module)
    finally:
        for name, stand_in in present.items():
            setattr(datetime, name, stand_in)
    put()


def _leave_alone(name: str) -> bool:
    top = name.partition(".")[0]
    return top in sys.stdlib_module_names or top in ("fencepost", "greenlet", "pytest", "_pytest")
