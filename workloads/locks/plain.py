"""The plain contract: the interface of a user lock (docs/your-lock.md).

    class MyLock:
        def __init__(self, servers, **options): ...   # servers: [(host, port), ...]
        def acquire(self, name, ttl): ...             # ttl in s
        def release(self, name): ...
        # and, if it has them: extend(name, ttl), close()

Any of them may be a coroutine function (event_loop.py).

`PlainLock` makes a Lock of such an object. It makes no decisions: each answer has one meaning, and
an answer without a meaning raises `BadAnswer`, so that a client's mistake is never counted against
its lock.

After True a client believes for the TTL that it asked for, from its call of acquire: the user of a
lease counts on that, and a service that starts counting when the request arrives cannot end it
sooner. A lock that knows a better deadline returns it in a Grant. `None` there (unknown) is for
locks that are renewed in the background, because without a deadline no checker can distinguish an
expired lease from a double grant.
"""

from __future__ import annotations

import math
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Any

from fencepost.workloads.contract import lock
from fencepost.workloads.contract.lock import CANCELLED, BadAnswer, Env, Failed, Indeterminate
from fencepost.workloads.locks import event_loop

# An exception of these types is a bug in the lock's code, whatever happened to the request.
_MISTAKES = (NameError, ImportError, NotImplementedError)
# A traceback that ends here is that of a call with wrong arguments.
_CALLERS = (__file__, event_loop.__file__)
_LEAST, _MOST = -(2**63), 2**63 - 1


class Deadline(Enum):
    """The deadline of a Grant that does not name one."""

    AS_ASKED = "from the call on, the TTL that was asked for"


@dataclass(frozen=True)
class Grant:
    """A granting answer with details. `token` is a fencing token. `deadline` is until when the
    client may believe, in s of time.monotonic(); None: unknown. `wakeups` is how often the waiter
    was woken before it was granted the lock; None: unknown."""

    token: int | None = None
    deadline: float | Deadline | None = Deadline.AS_ASKED
    wakeups: int | None = None


def _ends_in(error: Exception) -> str:
    """Return the file in which the traceback of an error ends."""
    *_, (frame, _) = traceback.walk_tb(error.__traceback__)
    return frame.f_code.co_filename


def _assumes(answer: object) -> bool:
    """Return whether an answer that grants leaves the deadline to the client."""
    return not isinstance(answer, Grant) or answer.deadline is Deadline.AS_ASKED


class PlainLock:
    """A Lock made of a plain one. `name` is its name in errors.

    `make` makes the plain lock from its servers and its options. Its exceptions are raised here,
    unless `late`: the servers may be down just then, and acquire tries again.
    """

    def __init__(
        self,
        name: str,
        make: Callable[..., Any],
        env: Env,
        nodes: Sequence[str],
        options: Mapping[str, Any],
        late: bool = False,
    ) -> None:
        self._name = name
        self._env = env
        self._what = make
        self._lock: Any = None
        self._cancelled = False
        # The clock of a Grant is time.monotonic(); the env's has another zero.
        # A hunt pauses a client as it reads the env's. So the other is read after that pause.
        now = env.now()
        self._zero_ns = time.monotonic_ns() - now
        servers = [env.address(node) for node in nodes]
        self._loop = event_loop.EventLoop(env.lend) if event_loop.is_async(make) else None
        self._make: Callable[[], Any] = lambda: self.call(make, servers, **options)
        try:
            self._lock = self._made()
        except BadAnswer:
            raise
        except Exception:
            if not late:
                raise

    @property
    def extends(self) -> bool:
        return hasattr(self._what if self._lock is None else self._lock, "extend")

    @property
    def in_loop(self) -> bool:
        """Whether its calls run in an event loop, where they can be cancelled."""
        return self._loop is not None

    def cancel(self, then: Callable[[], None]) -> bool:
        """Cancel the running call in its event loop, and call `then` there if one was running.
        Return False if no call has begun there. Any thread may call this."""

        def cancelled() -> None:
            self._cancelled = True
            then()

        return self._loop is not None and self._loop.cancel(cancelled)

    def acquire(self, name: str, ttl_ns: int) -> lock.Grant:
        begun = self._env.now()
        if self._lock is None:
            self._lock = self._said("acquire", "unreachable", self._made_late)
        answer = self._said(
            "acquire", "not-granted", lambda: self.call(self._lock.acquire, name, ttl_ns / 1e9)
        )
        if answer is None or answer is False:
            raise Failed("not-granted", f"acquire answered {answer}")
        token, deadline = self._read("acquire", answer, begun + ttl_ns)
        wakeups = self._wakeups(answer.wakeups) if isinstance(answer, Grant) else None
        secret = self._env.random.randbytes(8).hex()
        assumed = _assumes(answer)
        return lock.Grant(name, token, deadline, secret, wakeups=wakeups, assumed=assumed)

    def extend(self, grant: lock.Grant, ttl_ns: int) -> lock.Grant:
        begun = self._env.now()
        answer = self._said(
            "extend", "not-held", lambda: self.call(self._lock.extend, grant.name, ttl_ns / 1e9)
        )
        if answer is False:
            raise Failed("not-held", "extend answered False")
        _, deadline = self._read("extend", answer, begun + ttl_ns)
        return replace(grant, deadline=deadline, assumed=_assumes(answer))

    def release(self, grant: lock.Grant) -> None:
        answer = self._said(
            "release", "not-held", lambda: self.call(self._lock.release, grant.name)
        )
        if answer is False:
            raise Failed("not-held", "release answered False")
        if answer is not None and answer is not True:
            raise self._nonsense(
                "release", answer, "None or True (it is released) or False (certainly not)"
            )

    def close(self) -> None:
        close = getattr(self._lock, "close", None)
        try:
            if close is not None:
                self.call(close)
        finally:
            if self._loop is not None:
                self._loop.close()
                self._loop = None

    def call(self, do: Callable[..., Any], *args: Any, **options: Any) -> Any:
        """Call the plain lock, in its event loop if it has coroutines."""
        return do(*args, **options) if self._loop is None else self._loop.call(do, *args, **options)

    def _made(self) -> Any:
        found = self._make()
        for verb in ("acquire", "release"):
            if not callable(getattr(found, verb, None)):
                raise BadAnswer(f"{self._name} has no {verb}; a lock needs acquire and release")
        if self._loop is None and event_loop.is_async(found):
            self._loop = event_loop.EventLoop(self._env.lend)  # a function has made it
        return found

    def _made_late(self) -> Any:
        try:
            return self._made()
        except BadAnswer:
            raise
        except Exception as error:  # whatever a library raises; nothing was asked for yet
            raise Failed("unreachable", f"{self._name} cannot be made: {error!r}") from error

    def _read(self, verb: str, answer: object, as_asked: int) -> tuple[int | None, int | None]:
        """Return the token and the deadline of an answer that grants."""
        if answer is True:
            return None, as_asked
        if not isinstance(answer, Grant):
            no = "False or None" if verb == "acquire" else "False"
            meant = f"True or a fencepost.Grant (granted), or {no} (certainly not)"
            raise self._nonsense(verb, answer, meant)
        return self._token(verb, answer.token), self._deadline(verb, answer.deadline, as_asked)

    def _token(self, verb: str, token: object) -> int | None:
        if token is None or (type(token) is int and _LEAST <= token <= _MOST):
            return token
        raise self._nonsense(
            verb, token, "a whole number of at most 64 bits, or None", " with the token"
        )

    def _wakeups(self, wakeups: object) -> int | None:
        if wakeups is None or (type(wakeups) is int and 0 <= wakeups <= _MOST):
            return wakeups
        raise self._nonsense(
            "acquire", wakeups, "a whole number from 0 on, or None", " with the wakeups"
        )

    def _deadline(self, verb: str, deadline: object, as_asked: int) -> int | None:
        if deadline is None:
            return None
        if deadline is Deadline.AS_ASKED:
            return as_asked
        of_the_monotonic_clock = "s of time.monotonic(), or None if it is unknown"
        if type(deadline) not in (int, float) or not math.isfinite(deadline):  # type: ignore[arg-type]
            raise self._nonsense(verb, deadline, of_the_monotonic_clock, " with the deadline")
        at_s = float(deadline)  # type: ignore[arg-type]
        now_s = time.monotonic()
        if abs(at_s - time.time()) < abs(at_s - now_s):
            meant = f"{of_the_monotonic_clock}: {now_s:.3f} is now, and this is time.time()'s"
            raise self._nonsense(verb, deadline, meant, " with the deadline")
        return round(at_s * 1e9) - self._zero_ns

    def _nonsense(self, verb: str, answer: object, meant: str, where: str = "") -> BadAnswer:
        shown = repr(answer)
        shown = shown if len(shown) <= 80 else f"{shown[:77]}..."
        return BadAnswer(
            f"{self._name}: {verb} answered{where} {shown} ({type(answer).__name__}); "
            f"it should be {meant}"
        )

    def _said(self, verb: str, certain: str, call: Callable[[], Any]) -> Any:
        """Return the plain lock's answer, or raise the error that its exception means.

        `certain` is the kind of a Failed without one; any other exception means that the op may
        have happened. An error about missing names or wrong arguments is a bug, not an answer.
        """
        self._cancelled = False
        try:
            return call()
        except CancelledError as error:
            kind = CANCELLED if self._cancelled else "raised"
            raise Indeterminate(kind, f"{verb} was cancelled") from error
        except BadAnswer:
            raise
        except Failed as error:
            if error.text:
                raise
            raise type(error)(certain, error.kind or "no reason given") from error
        except _MISTAKES as error:
            raise self._mistake(verb, error) from error
        except Exception as error:  # whatever a library raises
            if isinstance(error, TypeError) and _ends_in(error) in _CALLERS:
                raise self._mistake(verb, error) from error
            raise Indeterminate("raised", f"{type(error).__name__}: {error}") from error

    def _mistake(self, verb: str, error: Exception) -> BadAnswer:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        where = f", line {frame.lineno} of {Path(frame.filename).name}: {frame.line}"
        called = "" if isinstance(error, TypeError) else where
        return BadAnswer(
            f"{self._name}: {verb} raised {type(error).__name__}: {error}{called}. That is a bug "
            "in its code, not an answer of the lock"
        )
