"""The plain contract of an elector (docs/your-elector.md), and the Lock that is made of one.

    class MyElector:
        def __init__(self, servers, **options): ...          # servers: [(host, port), ...]
        def run(self, name, identity, ttl, started, stopped): ...   # ttl in s
        def resign(self): ...                                # optional

A reign is a hold. `acquire` is a campaign: it runs the elector in a thread, and returns once the
elector has called `started`. `lost` is the elector's `stopped`, or the end of its `run`. `release`
is `resign`, and returns once `run` has returned. An elector without `resign` leads until its
process ends; so does one that campaigns when its client has waited long enough.

An elector with `drives_work = True` has no beats: its `run` is also given `work`, and a beat is a
call of that (jobs.py).

`ElectorLock` makes no decisions: a call of `started` or `stopped` without a meaning raises
`BadAnswer` and ends the test, so that a mistake of the client never counts against its elector.
"""

from __future__ import annotations

import asyncio
import inspect
import math
import threading
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NoReturn

from fencepost.workloads.contract.lock import BadAnswer, Env, Failed, Grant, Indeterminate
from fencepost.workloads.electors.jobs import Jobs

CALLBACK, EXIT, CHECKED = ("callback", "exit", "checked")
"""What ends the work of a leader besides `stopped`. `exit`: the end of `run` and the deadline, and
its process ends with the work. `checked`: also an `is_leader()` that is false. `callback`: nothing
else."""
_LEAST_BEAT_NS = 50_000_000
_BEATS = 20
"""Beats of a lease."""
CAMPAIGNS_FOR = 4
"""How long a client campaigns before its process gives up, in leases."""
REST_S = 0.02
"""Between two campaigns of one process."""
REFUSED_S = 0.2
"""Before a process that was not elected ends, so that restarts do not use up the processor."""
_BUGS = (NameError, ImportError, NotImplementedError)
_MOST = 2**63 - 1


def beat_ns(ttl_ns: int) -> int:
    """Return the time between two beats of a leader's work."""
    return max(_LEAST_BEAT_NS, ttl_ns // _BEATS)


def is_elector(found: object) -> bool:
    """Return whether a class, or an object, is an elector and not a lock."""
    return callable(getattr(found, "run", None)) and not hasattr(found, "acquire")


def drives_work(found: object) -> bool:
    """Return whether the library of an elector sends the jobs itself."""
    return getattr(found, "drives_work", False) is True


class ElectorLock:
    """A Lock made of an elector. `name` is its name in errors; `make` makes it from its servers and
    its options. Its exceptions are raised here, unless `late`: the servers may be down then."""

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
        servers = [env.address(node) for node in nodes]
        self._make = partial(make, servers, **options)
        self._campaign: Campaign | None = None
        self._next: Any = None
        try:
            self._next = self._made()
        except BadAnswer:
            raise
        except Exception:
            if not late:
                raise

    extends = False
    stops = EXIT
    takes_jobs = False
    """Whether its client does the jobs of a leader that drives its work. Else they are not done."""

    @property
    def denies(self) -> bool:
        """Return whether the elector says that it leads no more, if the client asks before each
        write."""
        return self.stops == CHECKED and self._campaign is not None and self._campaign.denies()

    @property
    def resigns(self) -> bool:
        """Whether its leader can stop without the end of its process."""
        return callable(getattr(self._what, "resign", None))

    @property
    def jobs(self) -> Jobs | None:
        """The jobs that its leader sends; None if it does not drive its work."""
        return None if self._campaign is None else self._campaign.jobs

    @property
    def runs(self) -> bool:
        """Whether `run` of its leader has not ended, and not called `stopped` to resign."""
        campaign = self._campaign
        return campaign is not None and not (campaign.ended.is_set() or campaign.yields.is_set())

    def ask_to_resign(self) -> None:
        """Ask a leader that drives its work to resign. It may send jobs until `runs` is false."""
        assert self._campaign is not None, "a hold has a campaign"
        self._campaign.ask_to_resign()

    def _made(self) -> Any:
        found = self._make()
        if not is_elector(found):
            raise BadAnswer(f"{self._name} has no run; an elector needs run")
        return found

    def acquire(self, name: str, ttl_ns: int) -> Grant:
        """Campaign until the elector leads. Each campaign has an elector of its own."""
        if self._campaign is not None and self._campaign.grant is not None:
            # The elector has called stopped, so run returns soon.
            self._campaign.ended.wait(ttl_ns / 1e9)
            if not self._campaign.ended.is_set():
                raise Failed("not-granted", "run has not returned after stopped")
        if self._campaign is None or self._campaign.ended.is_set():
            try:
                elector, self._next = self._next or self._made(), None
            except BadAnswer:
                raise
            except Exception as error:  # whatever a library raises; nothing was asked for yet
                raise Failed("unreachable", f"{self._name} cannot be made: {error!r}") from error
            self._campaign = Campaign(self._name, elector, self._env, name, ttl_ns, self.stops)
            if self._campaign.jobs is not None and not self.takes_jobs:
                self._campaign.jobs.close()
            self._env.background(self._campaign.run)
        campaign = self._campaign
        campaign.changed.wait(CAMPAIGNS_FOR * ttl_ns / 1e9)
        if campaign.grant is not None:
            return campaign.grant
        if campaign.ended.is_set():
            self._env.end_threads()
            raise Failed("not-granted", campaign.why)
        raise Indeterminate("timeout", f"it does not lead after {CAMPAIGNS_FOR} leases")

    def extend(self, grant: Grant, ttl_ns: int) -> Grant:
        raise Failed("not-held", "an elector renews its lease by itself")

    def release(self, grant: Grant) -> None:
        campaign = self._campaign
        assert campaign is not None, "a hold has a campaign"
        if campaign.ended.is_set():
            raise Failed("not-held", campaign.why)
        if not self.resigns:
            raise Failed("not-possible", "the elector has no resign")
        if not campaign.resign():
            raise Indeterminate("timeout", "run did not return within a lease after resign")

    def close(self) -> None:
        """End the threads of the elector, as the end of its process does."""
        self._env.end_threads()
        self._campaign = None


class Campaign:
    """One call of an elector's `run`, and the reign that it may lead to.

    `changed`: it leads, or `run` has ended. `ended`: `run` has ended; `why`: how. `yields`: a
    leader that drives its work and was asked to resign has called `stopped`, which waits for the
    release.
    """

    def __init__(
        self, what: str, elector: Any, env: Env, name: str, ttl_ns: int, stops: str = EXIT
    ) -> None:
        self.jobs = Jobs() if drives_work(elector) else None
        self._what = what
        self._stops = stops
        self._elector = elector
        self._env = env
        self._name = name
        self._ttl_ns = ttl_ns
        # The clock of a deadline is time.monotonic(); the env's has another zero.
        # A hunt pauses a client as it reads the env's. So the other is read after that pause.
        now = env.now()
        self._zero_ns = time.monotonic_ns() - now
        self._leads = self._resigns = self._raised = self._asked = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self.grant: Grant | None = None
        self.why = ""
        self.changed, self.ended = threading.Event(), threading.Event()
        self.yields, self._may_yield = threading.Event(), threading.Event()

    def run(self) -> None:
        """Call `run` of the elector; its end ends the reign."""
        ttl_s = self._ttl_ns / 1e9
        arguments: tuple[Any, ...]
        arguments = self._name, self._env.identity, ttl_s, self.started, self.stopped
        if self.jobs is not None:
            arguments = (*arguments, self._work())
        try:
            if inspect.iscoroutinefunction(self._elector.run):
                asyncio.run(self._in_loop(arguments))
            else:
                self._elector.run(*arguments)
        except BadAnswer:
            raise
        except _BUGS as error:
            raise self._mistake(f"run raised {_described(error)}. That is a bug") from error
        except Exception as error:  # whatever a library raises
            if isinstance(error, TypeError) and _of_this_call(error):
                raise self._mistake(f"run cannot be called: {error}") from error
            self._raised = True
            self._end(f"run raised {_described(error)}")
        except SystemExit as error:
            raise self._mistake(f"run ended its process: {error}") from error
        else:
            if self._leads and not self._resigns:
                raise self._mistake("run returned while it leads; it should call stopped() first")
            self._end("run returned")

    async def _in_loop(self, arguments: tuple[Any, ...]) -> None:
        self._loop = asyncio.get_running_loop()
        await self._elector.run(*arguments)

    def denies(self) -> bool:
        """Return whether the elector has is_leader, which is false."""
        is_leader = getattr(self._elector, "is_leader", None)
        try:
            return is_leader is not None and not is_leader()
        except Exception:  # whatever a library raises: it does not know that it leads
            return True

    def resign(self) -> bool:
        """Ask the elector to resign; return whether `run` ended within a lease."""
        if not self._asked:
            self.ask_to_resign()
        self._may_yield.set()
        if self.jobs is not None:
            self.jobs.close()
        return self.ended.wait(self._ttl_ns / 1e9)

    def ask_to_resign(self) -> None:
        """Call `resign` of the elector, and do not wait for the end of `run`."""
        self._asked = self._resigns = True
        try:
            if self._loop is None:
                self._elector.resign()
            else:
                asyncio.run_coroutine_threadsafe(self._resigned(), self._loop)
        except _BUGS as error:
            raise self._mistake(f"resign raised {_described(error)}. That is a bug") from error
        except Exception as error:  # whatever a library raises
            raise Indeterminate("raised", f"resign raised {_described(error)}") from error

    async def _resigned(self) -> None:
        """Call `resign` in the loop of `run`, which may be a coroutine function."""
        try:
            found = self._elector.resign()
            if inspect.isawaitable(found):
                await found
        except _BUGS as error:
            raise self._mistake(f"resign raised {_described(error)}. That is a bug") from error

    # Callbacks, which the elector may call in any of its threads.

    def started(
        self,
        token: int | None = None,
        deadline: float | None = None,
        *more: object,
        **others: object,
    ) -> Callable[[float], None]:
        """Note that it leads. Return the function by which it tells a later deadline."""
        if more or others:
            raise self._mistake("started takes a token and a deadline, and nothing else")
        if self._raised:
            return self.renewed  # an exception of run ends the process, and so does this thread
        if self.ended.is_set():
            raise self._mistake("started was called after run had returned")
        if self.grant is not None:
            raise self._mistake("started was called twice in one run")
        if token is not None and not (type(token) is int and -_MOST <= token <= _MOST):
            raise self._mistake(f"started was called with the token {token!r}; it is an integer")
        until = None if deadline is None else self._ns(deadline)
        self._leads = True
        secret = self._env.random.randbytes(8).hex()
        self.grant = Grant(self._name, token, until, secret)
        self.changed.set()
        return self.renewed

    def renewed(self, deadline: float) -> None:
        """Note a later deadline of a leader."""
        until = self._ns(deadline)
        if self._leads and self.grant is not None:
            self._env.renewed(self.grant.secret, until)

    def stopped(self, *more: object) -> None:
        """Note that it leads no more."""
        if more:
            raise self._mistake("stopped takes no argument")
        if self.grant is None:
            raise self._mistake("stopped was called before started")
        self._stop("stopped was called")

    def _work(self) -> Callable[..., Any]:
        """Return `work` for a `run`: a coroutine function if `run` is one."""
        jobs = self.jobs
        assert jobs is not None, "work is for electors that drive their work"

        def work(*names: object, point: str = "") -> None:
            if self.grant is None:
                raise self._mistake("work was called before started")
            if not all(isinstance(name, str) for name in names):
                raise self._mistake("work takes the names of jobs, which are text")
            jobs.send(tuple(map(str, names)), point)

        async def work_in_loop(*names: object) -> None:
            await asyncio.to_thread(work, *names)

        return work_in_loop if inspect.iscoroutinefunction(self._elector.run) else work

    def _stop(self, why: str) -> None:
        if self._leads and self.grant is not None:
            if self.jobs is not None and self._asked and not self._raised:
                # The client did its jobs until now. It gives up the hold before the elector does.
                self.yields.set()
                self._may_yield.wait(self._ttl_ns / 1e9)
            if self.jobs is not None:
                self.jobs.close()
            self._leads = False
            self._env.lost(self.grant.secret, why)

    def _end(self, why: str) -> None:
        self.why = why
        if not (self._raised and self._stops == CALLBACK):
            self._stop(why)
        if self.jobs is not None:
            self.jobs.close()
        self.ended.set()
        self.changed.set()

    def _ns(self, deadline: object) -> int:
        """Return a deadline on the env's clock, in ns."""
        right = type(deadline) in (int, float) and math.isfinite(deadline)  # type: ignore[arg-type]
        now_s = time.monotonic()
        if not right or abs(deadline - time.time()) < abs(deadline - now_s):  # type: ignore[operator]
            raise self._mistake(
                f"it named the deadline {deadline!r}; it should be in s of time.monotonic() "
                f"({now_s:.3f} is now)"
            )
        return round(deadline * 1e9) - self._zero_ns  # type: ignore[operator]

    def _mistake(self, words: str) -> BadAnswer:
        """Return the error for a bug in the elector's code. A background task raises it as well,
        because the elector may catch it."""
        error = BadAnswer(f"{self._what}: {words}")
        self._env.background(partial(_raise, error))
        return error


def _of_this_call(error: BaseException) -> bool:
    """Return whether a call in this file raised it, because its arguments do not fit."""
    return traceback.extract_tb(error.__traceback__)[-1].filename == __file__


def _raise(error: BaseException) -> NoReturn:
    raise error


def _described(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
