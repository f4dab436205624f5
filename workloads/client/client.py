"""A client under test: applies ops to one lock and one resource, and reports the results.

A client closes its sessions and connections twice: when its process is gone (an op ended `info`),
and at its own end, when standard input has ended. If a grant depends on one of them, the service
may end it then. So the client writes it down, as an op `close` that was not requested.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn, cast

from fencepost.workloads.client.failpoints import Reached
from fencepost.workloads.client.holds import Holds
from fencepost.workloads.client.machine import Machine, real
from fencepost.workloads.client.steps import Steps
from fencepost.workloads.client.wire import Said, Setup
from fencepost.workloads.contract.lock import (
    CANCELLED,
    BadAnswer,
    Env,
    Failed,
    Grant,
    Indeterminate,
    Interrupt,
    Lock,
    SharedLock,
)
from fencepost.workloads.contract.resource import Resource
from fencepost.workloads.contract.store import Opening
from fencepost.workloads.electors.jobs import Jobs
from fencepost.workloads.electors.plain import CALLBACK, ElectorLock
from fencepost.workloads.locks import user_lock
from fencepost.workloads.locks.plain import PlainLock
from fencepost.workloads.resources.registry import GUARDS, STORES

# A write held back in the network must be able to arrive late: GitHub's took 90 s.
RESOURCE_TIMEOUT_S = 120.0


class Client:
    """Applies ops one at a time and reports how they ended. `machine`: the real one by default.
    `steps` counts the steps of an op. `replace` replaces the program of an elector by that of its
    successor, whose process number it takes, and does not return. `calls`: a call of the lock is
    running, and was not cancelled; `call_begins`: what to call at the beginning of each one."""

    def __init__(
        self,
        setup: Setup,
        out: Said,
        failpoints: Reached,
        machine: Machine | None = None,
        steps: Steps | None = None,
        replace: Callable[[int], NoReturn] | None = None,
    ) -> None:
        self._setup = setup
        self._replace = replace
        self._steps = steps
        self._out = out
        self._failpoints = failpoints
        self._machine = machine or real(setup)
        self._guard = GUARDS[setup.guard]
        self._count = 0
        self.calls = self._takes_jobs = False
        self.call_begins: Callable[[], None] | None = None
        self._open()

    def apply(self, f: str, asked: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        """Do one op, from its invocation to its completion; return how it ended, and its value.

        The completion is not written yet: flush before waiting.
        """
        value = self._complete(asked) if f == "write" else asked
        if self._steps is not None:
            self._steps.begin(f)
        self._out.event("invoke", f, value)
        self._out.flush()
        try:
            answer: dict[str, Any] = value | _VERBS[f](self, value)
        except Indeterminate as error:
            return self._failed("fail" if f == "read" else "info", f, value, error)
        except Failed as error:
            return self._failed("fail", f, value, error)
        except Interrupt:
            return self._failed("info", f, value, Indeterminate(CANCELLED, f"{f} was interrupted"))
        self._out.event("ok", f, answer)
        if f == "acquire":
            self._holds.say_if_lost_already(self._holds.granted(answer["hold"]))
            self._failpoints.reach("acquired")
        return "ok", answer

    def give_up(self, asked: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        """Report a hold as lost if at most `left` ns of its lease are left, by this client's clock.
        Return its state: `lost`, and its `deadline`."""
        grant = self._holds.granted(asked["hold"])
        over = grant.deadline is not None and self._out.now() >= grant.deadline - asked["left"]
        if over:
            self._holds.lost(grant.secret, "its holder gives it up at the end of the lease")
        lost = over or self._holds.is_lost(grant)
        return "ok", {**asked, "lost": lost, "deadline": grant.deadline}

    def _complete(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Add to a write a value, unique in the run, and the token of its hold."""
        self._count += 1
        grant = self._holds.get(asked.get("hold"))
        value = f"{self._setup.node}.{self._out.process}.{self._count}"
        written = {"value": value, "token": grant.token if grant else None, **asked}
        return written if grant is None or grant.minor is None else written | {"minor": grant.minor}

    def _failed(
        self, type: str, f: str, value: dict[str, Any], error: Failed
    ) -> tuple[str, dict[str, Any]]:
        self._out.event(type, f, value, error)
        if type == "info":
            self._succeed(keeps_lock=error.kind == CANCELLED and self._keeps_lock)
        return type, value

    def _acquire(self, value: dict[str, Any]) -> dict[str, Any]:
        self._holds.waits_for(value["lock"])
        try:
            if value.get("mode") == "shared":
                acquire = cast(SharedLock, self._lock).acquire_shared
            else:
                acquire = self._lock.acquire
            self._begin_call()
            grant = acquire(value["lock"], value["ttl"])
        finally:
            self.calls = False
            self._holds.waits_for(None)
        if self._setup.own is not None and not self._guard.needs.by_grant(grant):
            raise BadAnswer(
                f"{self._setup.own.lock}: acquire granted without {self._guard.needs.what}, which "
                f"guard {self._guard.name} needs; it should answer fencepost.Grant(token=...)"
            )
        self._count += 1
        hold = f"{self._out.process}-{self._count}"
        answer: dict[str, Any] = {"token": grant.token, "deadline": grant.deadline, "hold": hold}
        if grant.assumed:
            answer["assumed"] = True
        if grant.minor is not None:
            answer["minor"] = grant.minor
        if grant.wakeups is not None:
            answer["wakeups"] = grant.wakeups
        if grant.granted_by:
            answer["granted_by"] = list(grant.granted_by)
        self._holds.add(hold, grant)
        return answer

    def _extend(self, value: dict[str, Any]) -> dict[str, Any]:
        held = self._holds.granted(value["hold"])
        try:
            self._begin_call()
            grant = self._lock.extend(held, value["ttl"])
        finally:
            self.calls = False
        self._holds.update(value["hold"], grant)
        return {"deadline": grant.deadline} | ({"assumed": True} if grant.assumed else {})

    def _release(self, value: dict[str, Any]) -> dict[str, Any]:
        held = self._holds.remove(value["hold"])
        try:
            self._begin_call()
            self._lock.release(held)
        finally:
            self.calls = False
        return {}

    def _begin_call(self) -> None:
        """Note that a call of the lock begins. Nothing else can be cancelled."""
        self.calls = True
        if self.call_begins is not None:
            self.call_begins()

    def _read(self, value: dict[str, Any]) -> dict[str, Any]:
        content, version = self._resource.read(value["resource"])
        return {"value": content, "version": version}

    def _write(self, value: dict[str, Any]) -> dict[str, Any]:
        grant = self._holds.get(value.get("hold"))
        if self._guard.looks_at_clock:
            self._look_at_the_clock(grant)
        self._failpoints.reach("before-write")
        try:
            stored = self._resource.write(
                value["resource"], value["value"], value["version"], grant
            )
        except Indeterminate:
            raise
        except Failed as error:
            if error.kind == "refused":
                self._holds.settle(value.get("hold"))
            raise
        self._holds.settle(value.get("hold"))
        return {"stored": stored}

    def _look_at_the_clock(self, grant: Grant | None) -> None:
        """Refuse to write if the lease has expired. A pause after this check goes unnoticed."""
        if grant is None or self._holds.is_lost(grant):
            raise Failed("refused", "the client knows that it has lost the lock")
        if grant.deadline is not None and self._out.now() >= grant.deadline:
            raise Failed("refused", "the client's lease has expired, by its own clock")

    # One process after the other, each with its own connections.

    def _open(self) -> None:
        setup, machine = self._setup, self._machine
        self._holds = Holds(self._out)
        env = Env(
            now=self._out.now,
            sleep=machine.sleep,
            random=machine.random(f"{setup.seed}/{self._out.process}"),
            connect=machine.connect,
            address=machine.address,
            failpoint=self._failpoints.reach,
            background=machine.background,
            renewed=self._holds.renewed,
            lost=self._holds.lost,
            expired=self._holds.expired,
            requeued=self._holds.requeued,
            mutex=machine.mutex,
            pool=machine.pool,
            dial=machine.dial,
            identity=f"{setup.node}.{self._out.process}",
            end_threads=machine.end_threads,
        )
        if self._steps is not None:
            env = self._steps.around(env)
        self._lock = self._made(env)
        if isinstance(self._lock, ElectorLock) and setup.stops:
            self._lock.stops = setup.stops
            self._lock.takes_jobs = self._takes_jobs
        store, guard = STORES[setup.store], self._guard
        rule = store.rule(guard)
        assert rule is not None, f"store {store.name} cannot keep guard {guard.name}"
        self._resource = store.open(
            Opening(env, setup.storage, setup.servers, guard, RESOURCE_TIMEOUT_S, rule)
        )

    def _made(self, env: Env) -> Lock:
        setup = self._setup
        if setup.own is not None:
            # The servers were up when the first one was made. A successor may begin during a fault.
            late = self._out.process >= setup.stride
            folder = Path(setup.own.folder)
            return user_lock.make(folder, setup.own.lock, env, setup.servers, setup.options, late)
        make = _registry().LOCKS[setup.lock].make
        assert make is not None, f"the client of {setup.lock} is a separate program"
        lock: Lock = make(env, setup.servers, setup.options)
        return lock

    @property
    def extends(self) -> bool:
        """Return whether its lock can be extended; a user lock may lack that verb."""
        return getattr(self._lock, "extends", True)

    @property
    def resigns(self) -> bool:
        """Return whether a hold can be released; a leader may hold it until its process ends."""
        return getattr(self._lock, "resigns", True)

    @property
    def elects(self) -> bool:
        """Return whether its lock is an elector, and its holds are reigns."""
        return isinstance(self._lock, ElectorLock)

    @property
    def elector(self) -> ElectorLock:
        """Return its lock, which is an elector."""
        assert isinstance(self._lock, ElectorLock), "only an elector leads"
        return self._lock

    @property
    def jobs(self) -> Jobs | None:
        """Return the jobs that its leader sends itself; None if this client makes the beats."""
        return self.elector.jobs

    def take_jobs(self) -> None:
        """Do the jobs that a leader sends itself from now on (electors/jobs.py)."""
        self.elector.takes_jobs = self._takes_jobs = True

    def reach(self, point: str) -> None:
        """Reach a failpoint of the lock's own threads."""
        self._failpoints.reach(point)

    def leads(self, hold: str) -> bool:
        """Return whether this client still believes in a hold: it was not reported lost, its
        elector does not deny it, and its deadline, if there is one, has not passed. A client that
        waits for the callback of its elector looks at nothing else."""
        grant = self._holds.granted(hold)
        if self._holds.is_lost(grant):
            return False
        if self._setup.stops == CALLBACK:
            return True
        over = grant.deadline is not None and self._out.now() >= grant.deadline
        return not over and not (isinstance(self._lock, ElectorLock) and self._lock.denies)

    def leave(self) -> None:
        """End this process, and start its successor."""
        self._succeed()

    def _succeed(self, keeps_lock: bool = False) -> None:
        """Start the successor of a process that is gone, with no state of it left, except its lock
        if it keeps that. Only the end of the program ends the threads of an elector."""
        if self._replace is not None and self.elects:
            with self._out.speaking:
                self._out.event("invoke", "close", {})
                self._out.flush()
                self._replace(self._out.process + self._setup.stride)
        if not keeps_lock:
            self.close()
        with self._out.speaking:
            if not keeps_lock:
                self._holds.drop()
            self._out.process += self._setup.stride
        if not keeps_lock:
            self._open()

    @property
    def _keeps_lock(self) -> bool:
        """Whether it continues with its lock after a cancelled call, as a service does. A hold that
        is left would have to be released by another process, which no checker knows."""
        return self.in_loop and not self._holds.any and not self._setup.closes

    @property
    def in_loop(self) -> bool:
        """Whether calls of its lock run in an event loop, where they can be cancelled."""
        return isinstance(self._lock, PlainLock) and self._lock.in_loop

    def cancel(self, then: Callable[[], None]) -> bool:
        """Cancel the running call of its lock in its event loop, once, and call `then` there if one
        was running. Return False if none has begun there. Any thread may call this."""

        def cancelled() -> None:
            self.calls = False
            then()

        return self.calls and cast(PlainLock, self._lock).cancel(cancelled)

    def close(self) -> None:
        """Close sessions and connections, as an op of the current process.

        A lock's close may raise. That loses nothing: whether the service received it is unknown, as
        `info` says, and a successor opens its own connections.
        """
        self._out.event("invoke", "close", {})
        self._out.flush()
        errors = [error for part in (self._lock, self._resource) if (error := _closed(part))]
        if errors:
            self._out.event("info", "close", {}, errors[0])
        else:
            self._out.event("ok", "close", {})


_VERBS = {
    "acquire": Client._acquire,
    "extend": Client._extend,
    "release": Client._release,
    "read": Client._read,
    "write": Client._write,
}
CALLERS = tuple(_VERBS[f].__code__ for f in ("acquire", "extend", "release"))
"""The code that calls the lock. Each does so without a function between, whose arguments would take
more of the stack: a hunt copies the stack when it switches between clients."""


@cache
def _registry() -> ModuleType:
    """Import the registry. A user lock does not need it, and it loads all locks."""
    from fencepost.workloads.locks import registry

    return registry


def _closed(part: Lock | Resource) -> Failed | None:
    """Close the lock or the resource; return the error if there was one."""
    try:
        part.close()
    except Failed as error:
        return error
    except Exception as error:  # whatever a library raises
        return Failed("raised", repr(error))
    return None
