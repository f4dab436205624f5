"""Simulates `select`, selectors and pairs of sockets, of which event loops are made.

CPython's own loop of asyncio runs on them unchanged. A file is anything with the methods of `File`;
it has a number for as long as its run lasts.
"""

from __future__ import annotations

import errno
import selectors
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from fencepost.hunt.intercept.context import Place, here
from fencepost.hunt.sim.world import Wake

_FIRST = 1000


class File(Protocol):
    """A simulated socket, or one end of a pair.

    `watchers`: the tasks that wait until it is ready.
    """

    watchers: list[Wake]

    def readable(self) -> bool: ...
    def writable(self) -> bool: ...


def number(file: File, place: Place) -> int:
    """Give a file its number."""
    place.files.append(file)
    return _FIRST + len(place.files) - 1


def poke(file: File, place: Place, after_ns: int = 0) -> None:
    """Wake the tasks that wait for a file, because it may be ready by then."""
    for wake in file.watchers:
        # It is off once its task has stopped waiting.
        place.world.at(place.world.now + after_ns, wake)


def select(
    readers: Iterable[Any],
    writers: Iterable[Any],
    errors: Iterable[Any] = (),
    timeout: float | None = None,
) -> tuple[list[Any], list[Any], list[Any]]:
    """Replace select.select."""
    place = here()
    assert place is not None
    reads = [(one, _file(one, place)) for one in readers]
    writes = [(one, _file(one, place)) for one in writers] if writers else []
    until = None if timeout is None else place.world.now + max(0, round(timeout * 1e9))
    while True:
        readable = [one for one, file in reads if file.readable()]
        writable = [one for one, file in writes if file.writable()] if writes else []
        if readable or writable:
            return readable, writable, []
        # What follows on a file that is ready takes a step.
        place.step()
        if until is not None and place.world.now >= until:
            return [], [], []
        _wait(place, [file for _, file in (*reads, *writes)], until)


def _wait(place: Place, files: list[File], until: int | None) -> None:
    wake = Wake(place.task)
    for file in files:
        file.watchers.append(wake)
    if until is not None:
        place.world.at(until, wake)
    try:
        place.world.wait()
    finally:
        wake.off = True
        for file in files:
            if wake in file.watchers:
                file.watchers.remove(wake)


def _file(one: Any, place: Place) -> File:
    found = one if isinstance(one, int) else one.fileno()
    if not _FIRST <= found < _FIRST + len(place.files):
        raise place.unknown(f"it waits for the file {found}, which is not simulated")
    file: File = place.files[found - _FIRST]
    return file


def found_end(number: Any, place: Place) -> End | None:
    """Return the end of a pair with this number, None if it is no simulated file's."""
    found = place.files[number - _FIRST] if _FIRST <= number < _FIRST + len(place.files) else None
    return found if isinstance(found, End) else None


def fcntl(real: Callable[..., Any]) -> Callable[..., Any]:
    """Replace fcntl.fcntl: no flag of a simulated file has an effect."""

    def chosen(one: Any, command: int, argument: Any = 0) -> Any:
        place = here()
        if place is None:
            return real(one, command, argument)
        _file(one, place)
        return 0

    return chosen


class Poll:
    """A replacement for select.poll. Some systems lack its constants."""

    _IN, _OUT = 1, 4

    def __init__(self) -> None:
        self._files: dict[int, int] = {}

    def register(self, one: Any, mask: int = _IN | _OUT) -> None:
        self._files[one if isinstance(one, int) else one.fileno()] = mask

    modify = register

    def unregister(self, one: Any) -> None:
        del self._files[one if isinstance(one, int) else one.fileno()]

    def poll(self, timeout: float | None = None) -> list[tuple[int, int]]:
        """Return the files that are ready, with their events; `timeout` in ms."""
        within = None if timeout is None or timeout < 0 else timeout / 1000
        reads = [one for one, mask in self._files.items() if mask & self._IN]
        writes = [one for one, mask in self._files.items() if mask & self._OUT]
        readable, writable, _ = select(reads, writes, (), within)
        events = {one: (one in readable) * self._IN + (one in writable) * self._OUT
                  for one in self._files}  # fmt: skip
        return [(one, found) for one, found in events.items() if found]


class Epoll(Poll):
    """A replacement for select.epoll, whose masks are those of poll. A file is ready for as long as
    it can be used (level-triggered)."""

    closed = False

    def __init__(self, sizehint: int = -1, flags: int = 0) -> None:
        super().__init__()

    def poll(self, timeout: float | None = None, maxevents: int = -1) -> list[tuple[int, int]]:
        """Return the files that are ready, with their events; `timeout` in s."""
        found = super().poll(None if timeout is None else timeout * 1000)
        return found if maxevents < 0 else found[:maxevents]

    def close(self) -> None:
        self.closed = True

    def __enter__(self) -> Epoll:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Selector(selectors.SelectSelector):
    """A replacement for selectors.DefaultSelector."""

    def _select(self, readers: Any, writers: Any, errors: Any, timeout: Any = None) -> Any:
        return select(readers, writers, errors, timeout)


class End:
    """One end of a socketpair."""

    family = type = proto = 0

    def __init__(self, place: Place) -> None:
        self._place = place
        self._inbox = b""
        self._blocks = True
        self._closed = False
        self._number = number(self, place)
        self.watchers: list[Wake] = []
        self.other: End

    def fileno(self) -> int:
        return -1 if self._closed else self._number

    def readable(self) -> bool:
        return bool(self._inbox) or self.other._closed

    def writable(self) -> bool:
        return True

    def setblocking(self, blocks: bool) -> None:
        self._blocks = blocks

    def settimeout(self, seconds: float | None) -> None:
        self._blocks = seconds != 0

    def getblocking(self) -> bool:
        return self._blocks

    def send(self, data: Any, flags: int = 0) -> int:
        if here() is not None:
            self.other._inbox += bytes(data)
            poke(self.other, self._place)
        return len(data)

    sendall = send

    def recv(self, size: int, flags: int = 0) -> bytes:
        if here() is None:
            return b""
        if not self.readable() and not self._blocks:
            raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")
        while not self.readable():
            _wait(self._place, [self], None)
        found, self._inbox = self._inbox[:size], self._inbox[size:]
        return found

    def close(self) -> None:
        self._closed = True
        if here() is not None:
            poke(self.other, self._place)


def pair(*_: Any) -> tuple[End, End]:
    """Replace socket.socketpair."""
    place = here()
    assert place is not None
    one, other = End(place), End(place)
    one.other, other.other = other, one
    return one, other
