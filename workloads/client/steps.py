"""Numbers the steps of a client at its boundary, so that a place in its code has a number.

Each clock reading, message, reply, sleep and failpoint of a lock or of the resource is a step; each
op restarts the count. The same code counts in a simulation and on a real machine, so that step 7 of
a client's third op is the same place in both. A lock's own threads are not counted, because they
are in no op. For connections that a lock opens itself see sockets.py.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any, Protocol

from fencepost.workloads.client.failpoints import Failpoints
from fencepost.workloads.contract.lock import Env, Failed, Link


@dataclass(frozen=True)
class Step:
    """One step of an op: its number, and its kind: `now`, `sleep`, `failpoint`, `connect`, `send`
    or `receive`; the node and the command of a message, and its link, which is a socket if the lock
    opened it. `f` is the op's."""

    number: int
    kind: str
    node: str = ""
    command: tuple[Any, ...] = ()
    link: Any = None
    f: str = ""


class Watcher(Protocol):
    """Called for each step, before and after it is taken."""

    def comes(self, step: Step) -> None: ...
    def over(self, step: Step) -> None: ...


class Steps:
    """Counts the steps of one client."""

    def __init__(self, watcher: Watcher) -> None:
        self._watcher = watcher
        self._count = 0
        # The lock's own threads: those that it was given, and those that it starts itself.
        self._aside: ContextVar[bool] = ContextVar("aside", default=False)
        self._thread = 0
        # The thread of an event loop that the op waits for.
        self._lent: int | None = None
        self._inside = False
        self._f = ""

    def begin(self, f: str = "") -> None:
        """Begin an op, on the calling thread."""
        self._count = 0
        self._f = f
        self._thread = threading.get_ident()

    def around(self, env: Env) -> Env:
        """Return the same env with its steps counted."""

        def now() -> int:
            return int(self.step("now", env.now))

        def sleep(seconds: float) -> None:
            self.step("sleep", lambda: env.sleep(seconds))

        def failpoint(name: str) -> None:
            self.step("failpoint", lambda: env.failpoint(name))

        def connect(node: str, timeout_s: float) -> Link:
            return _Counted(self, node, env.connect(node, timeout_s))

        def background(work: Callable[[], None]) -> None:
            def aside() -> None:
                self._aside.set(True)
                work()

            env.background(aside)

        return replace(
            env, now=now, sleep=sleep, failpoint=failpoint, connect=connect, background=background,
            lend=self._lend,
        )  # fmt: skip

    def _lend(self, thread: int | None) -> None:
        self._lent = thread

    def step(self, kind: str, do: Callable[[], Any], *about: Any) -> Any:
        """Do something that is a step; `about` it: node, command and link. Steps within a step do
        not count."""
        mine = threading.get_ident() in (self._thread, self._lent)
        if self._inside or self._aside.get() or not mine:
            return do()
        self._count += 1
        step = replace(Step(self._count, kind, *about), f=self._f)
        self._inside = True
        try:
            self._watcher.comes(step)
            try:
                return do()
            finally:
                self._watcher.over(step)
        finally:
            self._inside = False


class _Counted:
    """A Link whose messages are steps."""

    def __init__(self, steps: Steps, node: str, link: Link) -> None:
        self._steps = steps
        self._node = node
        self._link = link

    def send(self, *command: Any) -> None:
        about = self._node, command, self._link
        self._steps.step("send", lambda: self._link.send(*command), *about)

    def receive(self) -> Any:
        return self._steps.step("receive", self._link.receive, self._node)

    def call(self, *command: Any) -> Any:
        self.send(*command)
        return self.receive()

    def close(self) -> None:
        self._link.close()


def before(number: int) -> str:
    """Return the failpoint before a step."""
    return f"step-{number}"


def connected(number: int) -> str:
    """Return the failpoint between a step's connecting and its sending."""
    return f"step-{number}-connected"


class Stops:
    """Makes each step of a real client a failpoint, with a second one after it has connected, and
    reaches the failpoints of requests (nemesis/failpoints.py).

    `replies`: also `replies-in-flight`, for a lock whose own code does not.
    """

    def __init__(self, failpoints: Failpoints, replies: bool = False) -> None:
        self._failpoints = failpoints
        self._replies = replies
        self._sent: tuple[Any, ...] | None = None
        self._read = False

    def comes(self, step: Step) -> None:
        self._failpoints.reach(before(step.number))
        if step.number == 1:
            self._sent, self._read = None, False
        if step.kind == "send":
            self._sends(step)
        elif step.kind == "receive" and not self._read:
            self._read = True
            if self._replies and step.f == "acquire":
                self._failpoints.reach("replies-in-flight")
            if step.f == "extend":
                self._failpoints.reach("extend-in-flight")
        point = connected(step.number)
        if step.kind == "send" and self._failpoints.is_armed(point):
            with suppress(Failed):  # which the message itself reaches, too
                getattr(step.link, "open", lambda: None)()
            self._failpoints.reach(point, _port(step.link))

    def _sends(self, step: Step) -> None:
        """Reach the failpoint before this request. An acquire that polls sends one request again
        and again, which does not count as another one."""
        before_it, self._sent = self._sent, step.command[:1]
        if before_it is None:
            if step.f in ("acquire", "release", "extend"):
                self._failpoints.reach(f"before-{step.f}")
        elif self._read and (step.f != "acquire" or before_it != self._sent):
            self._failpoints.reach("between-requests")

    def over(self, step: Step) -> None:
        if step.kind == "connect":
            self._failpoints.reach(connected(step.number), _port(step.link))


def _port(link: Any) -> int:
    """Return the local port of a link or a socket; 0 without one."""
    try:
        return int(link.getsockname()[1])
    except (AttributeError, OSError):
        return 0
