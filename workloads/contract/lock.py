"""The interface between a worker and the lock under test.

A lock takes its clock, its sleep, its randomness and its connections from its `Env`, never from
module globals, so that the same code can run on another clock.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from random import Random
from typing import Any, Protocol

CANCELLED = "cancelled"
"""The kind of an Indeterminate whose call was cancelled by a fault."""


class Interrupt(KeyboardInterrupt):
    """Raised in a call that does not run in an event loop, as a handler of a signal raises it."""


class Failed(Exception):
    """The request has certainly not been carried out; `kind` is a word, `text` a sentence.

    Kinds: `not-granted` (the lock), `not-held` (the hold had ended already), `no-quorum` (too few
    servers answered), `unreachable`, `refused` (the resource's guard). A user lock (plain.py) may
    omit both, or give only the sentence.
    """

    def __init__(self, kind: str = "", text: str = "") -> None:
        if not text.isascii():
            # Bytes that are no text may come as half of a surrogate pair, which no file can have.
            text = text.encode("utf-8", "backslashreplace").decode()
        super().__init__(text or kind)
        self.kind = kind
        self.text = text


class Indeterminate(Failed):
    """The request may have been carried out, or may be later. Kinds: `timeout`, `no-quorum`,
    `cancelled`."""


class BadAnswer(Exception):
    """A user's code gave an invalid answer, or made an invalid call; the text shows it and the
    valid ones."""


@dataclass(frozen=True)
class Grant:
    """One grant. `deadline` in ns of the env's clock, None if no lease can be seen.

    `secret` proves ownership to the servers, and is unique among a client's grants. `minor` is the
    second half of a paired token; `settled`: a write has shown it to the resource, which refuses
    all earlier grants from then on. `wakeups` is how often a waiter was woken before it was granted
    the lock, None if the lock polls. `sequencer` identifies the hold to the service: a key that
    exists, with this create revision, during the hold. `granted_by`: the servers that granted, if
    the client asks several. `assumed`: the lock named no deadline, and its adapter filled in the
    call plus the TTL.
    """

    name: str
    token: int | None
    deadline: int | None
    secret: str
    minor: int | None = None
    settled: bool = False
    wakeups: int | None = None
    sequencer: tuple[str, int] | None = None
    granted_by: tuple[str, ...] = ()
    assumed: bool = False


class Link(Protocol):
    """A connection to one server that can be stopped between a request and its reply."""

    def send(self, *command: Any) -> None:
        """Send a request. Raises Failed if it certainly did not arrive, else Indeterminate."""

    def receive(self) -> Any:
        """Return the reply. Raises Indeterminate if none came in time; the connection is then
        dropped."""

    def call(self, *command: Any) -> Any:
        """Send a request and return its reply."""

    def close(self) -> None: ...


@dataclass(frozen=True)
class Env:
    """The part of the world that a lock may use.

    `now` gives ns, `sleep` takes seconds; `connect(node, timeout_s)` returns a Link, which connects
    on first use; `address(node)` returns the host and port for client libraries with their own
    connections. `failpoint(name)` marks a place of the code: a test may stop the process there.

    A lock that keeps its lease or session alive in the background does so in a thread that
    `background` starts, and reports the state of a grant, by its secret: `renewed(secret,
    deadline)` when it was renewed, `lost(secret, why)` when the client has to treat it as lost.
    `expired(why)`: the lease with which the service lets this client wait has expired, so it will
    not be granted. `requeued(why)`: its place in the queue may be lost, and it asks again by
    itself, under another session if necessary. `mutex()` makes a lock between such threads and the
    client. `pool(host, port)` returns HTTP connections to a server, in urllib3's interface; None:
    urllib3's own. `dial(protocol, host, port, connect_s, read_s)` returns a Link to a server with
    another protocol than Redis; None: workloads/transport/request_link.py. `lend(thread)`: the
    messages of this thread, by its ident, are those of the current op; None: they no longer are.
    `identity` is unique to this process of a client. `end_threads()` ends all other threads of the
    process, as its end does; only a simulated client can.
    """

    now: Callable[[], int]
    sleep: Callable[[float], None]
    random: Random
    connect: Callable[[str, float], Link]
    address: Callable[[str], tuple[str, int]]
    failpoint: Callable[[str], None]
    background: Callable[[Callable[[], None]], None]
    renewed: Callable[[str, int], None]
    lost: Callable[[str, str], None]
    expired: Callable[[str], None]
    mutex: Callable[[], AbstractContextManager[Any]] = threading.Lock
    pool: Callable[[str, int], Any] | None = None
    dial: Callable[[str, str, int, float, float], Link] | None = None
    requeued: Callable[[str], None] = lambda why: None
    lend: Callable[[int | None], None] = lambda thread: None
    identity: str = ""
    end_threads: Callable[[], None] = lambda: None


class Lock(Protocol):
    """Three verbs; each returns, or raises Failed (certainly not) or Indeterminate."""

    def acquire(self, name: str, ttl_ns: int) -> Grant: ...

    def extend(self, grant: Grant, ttl_ns: int) -> Grant:
        """Return the same grant with its new deadline."""

    def release(self, grant: Grant) -> None: ...

    def close(self) -> None:
        """Close connections; if the service has sessions, end the client's."""


class SharedLock(Lock, Protocol):
    """A lock with a shared mode: shared holds exclude only exclusive ones."""

    def acquire_shared(self, name: str, ttl_ns: int) -> Grant: ...
