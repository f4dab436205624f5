"""The boundary between a worker and the lock under test.

A lock takes its clock, its sleep, its randomness and its connections from the `Env` that it
is handed, never from module globals, so that the same code can run on another clock.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from random import Random
from typing import Any, Protocol


class Failed(Exception):
    """What was asked for has certainly not happened; `kind` is a word, `text` a sentence.

    Kinds: `not-granted` (the lock), `not-held` (the hold was gone already), `no-quorum` (too
    few servers answered), `unreachable`, `refused` (the resource's guard). A lock of one's own
    (plain.py) may leave both out, or give the sentence alone.
    """

    def __init__(self, kind: str = "", text: str = "") -> None:
        super().__init__(text or kind)
        self.kind = kind
        self.text = text


class Indeterminate(Failed):
    """What was asked for may have happened, now or later. Kinds: `timeout`, `no-quorum`."""


@dataclass(frozen=True)
class Grant:
    """One grant. `deadline` in ns of the env's clock, None where no lease can be seen.

    `secret` is what proves ownership to the servers, unique among a client's grants. `minor` is
    the second half of a paired token; `settled` says that a write has shown it to the resource,
    which from then on refuses all grants before it. `wakeups` is how often a waiter was woken
    before it was granted the lock, None where the lock polls. `sequencer` is what the service can
    be asked about: a key that is there, with this create revision, while the hold lasts.
    `granted_by`: the servers that said yes, where the client asks several.
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


class Link(Protocol):
    """A connection to one server that can be stopped between a request and its reply."""

    def send(self, *command: Any) -> None:
        """Raises Failed where the request certainly did not arrive, else Indeterminate."""

    def receive(self) -> Any:
        """Raises Indeterminate where no reply came in time; the connection is then dropped."""

    def call(self, *command: Any) -> Any:
        """`send` and `receive`."""

    def close(self) -> None: ...


@dataclass(frozen=True)
class Env:
    """What a lock may use of the world.

    `now` gives ns, `sleep` takes seconds; `connect(node, timeout_s)` gives a Link, which
    connects when it is first used; `address(node)` gives the host and port for clients that
    bring their own connections. `failpoint(name)` marks a place of the code: a test may stop the
    process there.

    A lock that keeps its lease or session alive in the background does so in a thread that
    `background` starts, and says what becomes of a grant, by its secret: `renewed(secret,
    deadline)` when it lives on, `lost(secret, why)` when the client has to take it for lost.
    `expired(why)` tells that the lease with which the service lets this client wait has ended: no
    grant can come of it. `requeued(why)`: its place in the queue may be gone, and it asks again by
    itself, under another session if need be.
    `mutex()` makes a lock that keeps such threads and the client apart. `pool(host, port)` gives
    HTTP connections to a server, as urllib3 has them; None: urllib3's own. `dial(protocol, host,
    port, connect_s, read_s)` gives a Link to a server that speaks something else than Redis;
    None: workloads/transport/request_link.py.
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


class Lock(Protocol):
    """Three verbs; each returns, or raises Failed (certainly not) or Indeterminate."""

    def acquire(self, name: str, ttl_ns: int) -> Grant: ...

    def extend(self, grant: Grant, ttl_ns: int) -> Grant:
        """The same grant with its new deadline."""

    def release(self, grant: Grant) -> None: ...

    def close(self) -> None:
        """Let go of connections; where the service has sessions, the client's ends with it."""


class SharedLock(Lock, Protocol):
    """A lock that has a shared mode as well: shared holds exclude exclusive ones only."""

    def acquire_shared(self, name: str, ttl_ns: int) -> Grant: ...
