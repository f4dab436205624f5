"""fencepost's SDK for Python 3.9 and newer: a single file, nothing to install.

It turns a lock into a program, which fencepost runs as a client under test (docs/protocol.md
defines its protocol). `fencepost test mylock.py:MyLock` needs no program; use this file if the
client's node has its own Python:

    from fencepost_sdk import Failed, Grant, run

    class MyLock:
        def __init__(self, servers, **options): ... # servers: [(host, port), ...]
        def acquire(self, name, ttl): ...            # in s. True or a Grant; False: certainly not
        def release(self, name): ...                 # False: it was not held

    run(MyLock)

The last line can be omitted: `python3 fencepost_sdk.py mylock.py:MyLock`. `run(MyLock,
promises=["fifo"])` names the promises of the lock in addition to exclusion (docs/your-lock.md).

A lock may also have `extend(name, ttl)`, answered like acquire, and `close()`, which closes its
connections. Raise `Failed` if the request has certainly not been carried out. Any other exception
means that it may have been: then this client is closed, and a successor is created.

A lock reports events between requests from any thread, through the client that `run(lambda client:
MyLock(client))` passes to it: `client.lost(name, why)`, with None for all holds, and
`client.renewed(name, deadline)`.

`run` also takes an elector (docs/your-elector.md): a class with `run` and without `acquire`.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import signal
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from enum import Enum
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, NoReturn

VERSIONS = (1, 2)
"""Of the protocol; 2 has `reset`."""
CONNECT_S = 5.0
# A write that is held back in the network must be able to arrive late.
REPLY_S = 120.0
Value = dict[str, Any]


class Failed(Exception):
    """The request was certainly not carried out: `Failed("why")`, or `Failed(kind, "why")`.

    Kinds: not-granted, not-held, no-quorum, unreachable.
    """

    def __init__(self, kind: str = "", text: str = "") -> None:
        super().__init__(text or kind)
        self.kind = kind if text else ""


class Indeterminate(Exception):
    """The request may have been carried out. Other exceptions of a lock mean the same; this one has
    a kind."""

    def __init__(self, kind: str = "", text: str = "") -> None:
        super().__init__(text or kind)
        self.kind = kind if text else "timeout"


class Deadline(Enum):
    """The deadline of a Grant that does not name one."""

    AS_ASKED = "from the call on, the TTL that was asked for"


class Grant(NamedTuple):
    """A granting answer with details.

    `token` is a fencing token. `deadline` is until when the client may count on the lock, in s of
    time.monotonic(); None: unknown, for example for a session that is kept alive. `wakeups` is how
    often the waiter was woken before it was granted the lock; None: unknown.
    """

    token: int | None = None
    deadline: float | Deadline | None = Deadline.AS_ASKED
    wakeups: int | None = None


class Misuse(BaseException):
    """The lock, or the elector, does not follow the rules of this SDK."""


class Client:
    """The client that a lock belongs to; each process has its own."""

    def __init__(self, worker: _Worker) -> None:
        setup = worker.setup
        self.servers: list[tuple[str, int]] = [
            (host, port) for host, port in map(setup["addresses"].get, setup["servers"])
        ]
        self.options: dict[str, Any] = setup["options"]
        self.node: str = setup["node"]
        self.seed = f"{setup['seed']}/{worker.process}"
        self._worker = worker

    def lost(self, name: str | None, why: str) -> None:
        """Report the hold of this lock as lost; None: every hold."""
        self._worker.tell(self, name, lambda hold: self._worker.say_lost(hold, why))

    def renewed(self, name: str, deadline: float) -> None:
        """Report that the lease of this lock was extended in the background."""
        self._worker.tell(self, name, lambda hold: self._worker.say_renewed(hold, deadline))

    def failpoint(self, point: str) -> None:
        """Mark a place where a test may stop this program, for example "replies-in-flight"."""
        self._worker.reach(point)


def main(reference: str) -> None:
    """Run a lock by FILE:NAME, of a file in this folder. It imports this module as `fencepost`."""
    sys.modules["fencepost"] = sys.modules["fencepost_sdk"] = sys.modules[__name__]
    file, _, name = reference.rpartition(":")
    sys.path.insert(0, os.getcwd())
    run(lambda client: _class(file, name)(client.servers, **client.options))


def _class(file: str, name: str) -> Any:
    return getattr(import_module(".".join(Path(file).with_suffix("").parts)), name)


def run(make: Callable[..., Any], promises: Sequence[str] | None = None) -> None:
    """Run a lock as a client of fencepost: its class, or a function that makes it of a Client.

    `promises`: those of the lock in addition to exclusion, by name.
    """
    # Standard output is reserved for events: output of a lock or its library goes to standard
    # error.
    out = os.dup(1)
    os.dup2(2, 1)
    inherited = json.loads(os.environ.pop(SUCCESSOR, "null"))
    orders = _Orders(inherited["heard"].encode() if inherited else b"")
    setup = inherited["setup"] if inherited else orders.take()
    if setup is None:
        return
    worker = _Worker(setup, make, out, orders, promises)
    try:
        if inherited:
            worker.succeed(inherited)
        else:
            worker.start()
        while (order := orders.take()) is not None:
            worker.order(order)
        worker.close()
    except Misuse as error:
        worker.say({"control": "broken", "why": str(error)})
        os._exit(1)
    os._exit(0)  # a library may have threads


class _Orders:
    """Standard input, without a hidden buffer. `heard` was read, and not taken."""

    def __init__(self, heard: bytes) -> None:
        self.heard = heard

    def take(self) -> Value | None:
        """Return the next message, or None at the end."""
        while b"\n" not in self.heard:
            chunk = os.read(0, 65536)
            if not chunk:
                return None
            self.heard += chunk
        line, _, self.heard = self.heard.partition(b"\n")
        message: Value = json.loads(line)
        return message


SUCCESSOR = "FENCEPOST_SUCCESSOR"
"""The environment variable by which a successor gets the state of its predecessor."""
CALLBACK, CHECKED = "callback", "checked"
"""What ends the work of a leader, of `stops` in the setup; anything else is `exit`."""
CAMPAIGNS_FOR = 4
"""How long a client campaigns before its process gives up, in leases."""


class _Candidacy:
    """One run of an elector. `changed`: it leads or has ended; `ended`: `run` has, and `why`."""

    def __init__(
        self, worker: _Worker, client: Client, elector: Any, name: str, ttl: float
    ) -> None:
        self._worker, self._client = worker, client
        self.elector, self.name, self.ttl = elector, name, ttl
        self._loop: asyncio.AbstractEventLoop | None = None
        self._speaking = threading.RLock()
        self._leads = self._resigns = False
        self.grant: Grant | None = None
        self.why = ""
        self.changed, self.ended = threading.Event(), threading.Event()
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        identity = f"{self._worker.setup['node']}.{self._worker.process}"
        arguments = self.name, identity, self.ttl, self.started, self.stopped
        try:
            if inspect.iscoroutinefunction(self.elector.run):
                asyncio.run(self._in_loop(arguments))
            else:
                self.elector.run(*arguments)
        except (NameError, ImportError, NotImplementedError, SystemExit) as error:
            self._misuse(f"run raised {error!r}. That is a bug")
        except Exception as error:  # whatever a library raises
            traceback.print_exc()
            self._end(f"run raised {error!r}", told=self._worker.stops != CALLBACK)
        else:
            if self._leads and not self._resigns:
                self._misuse("run returned while it leads; it should call stopped() first")
            self._end("run returned")

    async def _in_loop(self, arguments: tuple[Any, ...]) -> None:
        self._loop = asyncio.get_running_loop()
        await self.elector.run(*arguments)

    def _end(self, why: str, told: bool = True) -> None:
        with self._speaking:
            self.why = why
            if told:
                self._stop(why)
        self.ended.set()
        self.changed.set()

    def _stop(self, why: str) -> None:
        if self._leads:
            self._leads = False
            self._client.lost(self.name, why)

    def started(
        self, token: int | None = None, deadline: float | None = None
    ) -> Callable[[float], None]:
        with self._speaking:
            if self.grant is not None:
                self._misuse("started was called twice in one run")
            if self.ended.is_set():
                self._misuse("started was called after run had returned")
            self._leads, self.grant = True, Grant(token, deadline)
        self.changed.set()
        return self.renewed

    def renewed(self, deadline: float) -> None:
        with self._speaking:
            if self._leads:
                self._client.renewed(self.name, deadline)

    def stopped(self) -> None:
        with self._speaking:
            if self.grant is None:
                self._misuse("stopped was called before started")
            self._stop("stopped was called")

    def resign(self) -> bool:
        """Ask the elector to resign; return whether `run` ended within a lease."""
        with self._speaking:
            self._resigns = True
        if self._loop is None:
            self.elector.resign()
        else:
            asyncio.run_coroutine_threadsafe(self._resigned(), self._loop)
        return self.ended.wait(self.ttl)

    async def _resigned(self) -> None:
        found = self.elector.resign()
        if inspect.isawaitable(found):
            await found

    def _misuse(self, why: str) -> NoReturn:
        """End the program, from any thread, whatever exceptions the elector catches."""
        self._worker.say({"control": "broken", "why": why})
        os._exit(1)


class _Election:
    """The lock that is made of an elector: a reign is a hold."""

    def __init__(self, worker: _Worker, client: Client, made: Any, make: Callable[[], Any]) -> None:
        self._worker, self._client = worker, client
        self._next, self._make = made, make
        self._candidacy: _Candidacy | None = None
        self.resigns = hasattr(made, "resign")

    def acquire(self, name: str, ttl: float) -> Grant:
        """Campaign until the elector leads. Each candidacy has an elector of its own."""
        old = self._candidacy
        if old is not None and old.grant is not None and not old.ended.wait(ttl):
            raise Failed("not-granted", "run has not returned after stopped")
        if old is None or old.ended.is_set():
            elector, self._next = self._next or self._make(), None
            self._candidacy = _Candidacy(self._worker, self._client, elector, name, ttl)
        candidacy = self._candidacy
        assert candidacy is not None
        candidacy.changed.wait(CAMPAIGNS_FOR * ttl)
        if candidacy.grant is not None:
            return candidacy.grant
        if candidacy.ended.is_set():
            raise Failed("not-granted", candidacy.why)
        raise Indeterminate("timeout", f"it does not lead after {CAMPAIGNS_FOR} leases")

    def release(self, name: str) -> None:
        candidacy = self._candidacy
        assert candidacy is not None
        if candidacy.ended.is_set():
            raise Failed("not-held", candidacy.why)
        if not self.resigns:
            raise Failed("not-possible", "the elector has no resign")
        if not candidacy.resign():
            raise Indeterminate("timeout", "run did not return within a lease after resign")

    def denies(self) -> bool:
        """Return whether the elector says that it leads no more. One that cannot tell does not."""
        assert self._candidacy is not None
        is_leader = getattr(self._candidacy.elector, "is_leader", None)
        try:
            return is_leader is not None and not is_leader()
        except Exception:  # whatever a library raises
            return True


class _Hold:
    def __init__(self, id: str, name: str, token: int | None, deadline: float | None) -> None:
        self.id = id
        self.name = name
        self.token = token
        self.deadline = deadline
        self.lost = False


Say = Callable[[_Hold], None]


class _Worker:
    """Reads ops and writes events."""

    def __init__(
        self,
        setup: Value,
        make: Callable[..., Any],
        out: int,
        orders: _Orders,
        promises: Sequence[str] | None = None,
    ) -> None:
        self.setup = setup
        self._orders = orders
        self._promises = promises
        self.process: int = setup["process"]
        self._make = make
        self._out = out
        self._speaking = threading.RLock()
        self._count = 0
        self._armed: set[str] = set()
        self._holds: dict[str, _Hold] = {}
        # The lock that is being acquired, and the reports about it meanwhile.
        self._asked: str | None = None
        self._late: list[Say] = []
        self._granted: _Hold | None = None
        self._client: Client | None = None
        self._lock: Any = None
        self._verbs: dict[str, Callable[[Value], Value]] = {
            "acquire": self._acquire,
            "extend": self._extend,
            "release": self._release,
            "read": self._read,
            "write": self._write,
        }

    @property
    def stops(self) -> str:
        return str(self.setup.get("stops"))

    @property
    def _elects(self) -> bool:
        """Whether it is an elector. Before it is made: only electors have `stops`."""
        if self._lock is None:
            return isinstance(self.setup.get("stops"), str)
        return isinstance(self._lock, _Election)

    def start(self) -> None:
        """Report readiness once the lock is made, so that no acquire pays for it."""
        self._open()
        ready: Value = {
            "control": "ready",
            "version": max({1} | {*VERSIONS} & {*self.setup.get("versions", ())}),
            "pid": os.getpid(),
            "generates": False,
            # Unknown before it is made.
            "extends": self._lock is None or hasattr(self._lock, "extend"),
        }
        if self._promises is not None:
            ready["promises"] = list(self._promises)
        if self._elects:
            # No version 2: a reset would not end its threads. Before it is made, it may resign.
            resigns = getattr(self._lock, "resigns", True)
            ready |= {"version": 1, "extends": False, "elector": True, "resigns": resigns}
        self.say(ready)

    def order(self, order: Value) -> None:
        control = order.get("control")
        if "f" in order:
            self._apply(order["f"], order.get("value") or {})
        elif control == "arm":
            self._armed.add(order["point"])
        elif control == "disarm":
            self._armed.discard(order["point"])
        elif control == "clock":
            before, wall, after = time.monotonic_ns(), time.time_ns(), time.monotonic_ns()
            self.say({"control": "clock", "low_ns": wall - after, "high_ns": wall - before})
        elif control == "leave":
            self._leave()
        elif control == "reset":
            self._reset(order)

    def _reset(self, setup: Value) -> None:
        """Close the lock, and make the next one with no state left: another test begins."""
        self.close()
        self.setup, self.process, self._count = setup, setup["process"], 0
        self._armed.clear()
        self._holds.clear()
        self._asked, self._late, self._granted = None, [], None
        self.start()

    def _open(self) -> None:
        """Make the lock of this process, and its store.

        The servers are up when a test begins. Later they may be cut off just then, and the lock is
        made again at the next acquire.
        """
        self._store = _Store(*self.setup["addresses"][self.setup["storage"]])
        self._lock = None
        try:
            self._opened()
        except Exception as error:
            traceback.print_exc()
            if self.process < self.setup["stride"]:
                raise Misuse(f"the lock cannot be made: {error!r}") from error

    def _opened(self) -> Any:
        if self._lock is None:
            self._client = Client(self)
            client = self._client

            def made() -> Any:
                by_class = inspect.isclass(self._make)
                return (
                    self._make(client.servers, **client.options) if by_class else self._make(client)
                )

            self._lock = made()
            if callable(getattr(self._lock, "run", None)) and not hasattr(self._lock, "acquire"):
                self._lock = _Election(self, client, self._lock, made)
            missing = [f for f in ("acquire", "release") if not hasattr(self._lock, f)]
            if missing:
                raise Misuse(f"the lock has no {' and no '.join(missing)}")
        return self._lock

    def _apply(self, f: str, asked: Value) -> None:
        """Do one op, from its invocation to its completion."""
        if f in ("read", "write") and self._stopped(asked):
            self.say({"control": "stopped"})
            return
        value = self._complete(asked) if f == "write" else asked
        self._event("invoke", f, value)
        try:
            answer = {**value, **self._verbs[f](value)}
        except Exception as error:
            # A read that got no reply changed nothing.
            info = f != "read" and not isinstance(error, Failed)
            self._event("info" if info else "fail", f, value, error)
            if info:
                self._leave() if self._elects else self._succeed()
            return
        finally:
            hold, self._granted = self._granted, None
        if hold is None:
            self._event("ok", f, answer)
            return
        with self._speaking:
            self._event("ok", f, answer)
            self._holds[hold.id] = hold
            late, self._late, self._asked = self._late, [], None
            for say in late:
                say(hold)
        self.reach("acquired")

    def _complete(self, asked: Value) -> Value:
        """Add to a write a value, unique in the run, and the token of its hold."""
        self._count += 1
        hold = self._holds.get(asked.get("hold") or "")
        value = f"{self.setup['node']}.{self.process}.{self._count}"
        return {**asked, "value": value, "token": hold.token if hold else None}

    def _held(self, value: Value) -> _Hold:
        hold = self._holds.get(value["hold"])
        if hold is None:
            raise Failed("not-held", f"this process has no hold {value['hold']}")
        return hold

    def _acquire(self, value: Value) -> Value:
        try:
            lock = self._opened()
        except Exception as error:
            raise Failed("unreachable", f"the lock cannot be made: {error!r}") from error
        name = value["lock"]
        with self._speaking:
            self._asked, self._late = name, []
        ttl = value["ttl"] / 1e9
        token, until, wakeups = _ask("acquire", "not-granted", lock.acquire, name, ttl)
        guard = self.setup["guard"]
        if token is None and guard.startswith("fenced"):
            raise Misuse(f"acquire granted without a token, which guard {guard} needs")
        self._count += 1
        hold = self._granted = _Hold(f"{self.process}-{self._count}", name, token, until.s)
        found = {"token": hold.token, **self._until(until), "hold": hold.id}
        return found if wakeups is None else {**found, "wakeups": wakeups}

    def _extend(self, value: Value) -> Value:
        hold = self._held(value)
        if not hasattr(self._lock, "extend"):
            raise Failed("not-granted", "this lock has no extend")
        ttl = value["ttl"] / 1e9
        _, until, _ = _ask("extend", "not-held", self._lock.extend, hold.name, ttl)
        hold.deadline = until.s
        return self._until(until)

    def _release(self, value: Value) -> Value:
        hold = self._held(value)
        with self._speaking:
            del self._holds[hold.id]
        _said("not-held", lambda: self._lock.release(hold.name))
        return {}

    def _read(self, value: Value) -> Value:
        content, version = self._store.call("HMGET", _key(value), "value", "version")
        return {"value": content, "version": int(version or 0)}

    def _write(self, value: Value) -> Value:
        guard, token = self.setup["guard"], value["token"]
        if guard == "deadline":
            _look_at_the_clock(self._holds.get(value.get("hold") or ""))
        self.reach("before-write")
        shown = "" if token is None else token
        accepted, number = self._store.call(
            *("EVAL", self.setup["write_script"], 1, _key(value)),
            *(guard, value["value"], value["version"], shown, ""),
        )
        if not accepted:
            raise Failed("refused", f"guard {guard} compared with {number}")
        return {"stored": int(number)}

    def _stopped(self, value: Value) -> bool:
        """Return whether the reign of an op has ended, so that its work has."""
        hold = self._holds.get(value.get("hold") or "")
        if hold is None or not isinstance(self._lock, _Election):
            return False
        if hold.lost or self.stops == CALLBACK:
            return hold.lost
        over = hold.deadline is not None and time.monotonic() >= hold.deadline
        return over or (self.stops == CHECKED and self._lock.denies())

    def _leave(self) -> NoReturn:
        """Replace this program by itself, as the successor of this process: nothing else ends the
        threads of an elector. The pid stays."""
        with self._speaking:  # no report of this process from now on
            self._event("invoke", "close", {})
            left = {
                "setup": {**self.setup, "process": self.process + self.setup["stride"]},
                "predecessor": self.process,
                "heard": self._orders.heard.decode(),
                "armed": sorted(self._armed),
            }
            os.dup2(self._out, 1)
            words = Path("/proc/self/cmdline").read_bytes().split(b"\0")[1:-1]
            command = [os.fsencode(sys.executable), *words]
            environment = {**os.environ, SUCCESSOR: json.dumps(left)}
            os.execve(sys.executable, command, environment)

    def succeed(self, left: Value) -> None:
        """Take over from the predecessor, whose close is complete now."""
        self.process = left["predecessor"]
        self._event("ok", "close", {})
        self.process = self.setup["process"]
        self._armed.update(left["armed"])
        self._open()

    def _succeed(self) -> None:
        """Start the successor: no state of the process that is gone is left."""
        self.close()
        self.process += self.setup["stride"]
        self._open()

    def close(self) -> None:
        """Close the lock's connections and the store's, as an op of the current process."""
        with self._speaking:
            self._event("invoke", "close", {})
            # Later reports of the lock have no process.
            self._client, self._asked = None, None
            self._holds.clear()
        raised = None
        try:
            if hasattr(self._lock, "close"):
                self._lock.close()
        except Exception as error:
            raised = error
        self._store.close()
        self._event("info" if raised else "ok", "close", {}, raised)

    # Reports of the lock. Those about a hold whose acquire is in progress follow its `ok`.

    def tell(self, client: Client, name: str | None, say: Say) -> None:
        with self._speaking:
            if client is not self._client:
                return
            for hold in self._holds.values():
                if name in (None, hold.name):
                    say(hold)
            if self._asked is not None and name in (None, self._asked):
                self._late.append(say)

    def say_lost(self, hold: _Hold, why: str) -> None:
        if not hold.lost:
            hold.lost = True
            value = {"lock": hold.name, "hold": hold.id}
            self._event("info", "lost", value, Failed("lost", why))

    def say_renewed(self, hold: _Hold, deadline: float) -> None:
        hold.deadline = deadline
        value = {"lock": hold.name, "hold": hold.id, "deadline": self._time(deadline)}
        self._event("info", "renewed", value)

    def reach(self, point: str) -> None:
        """Stop here if a test has ordered it, until the test resumes the program."""
        if point in self._armed:
            self._armed.remove(point)
            with self._speaking:  # no output between this and the stop
                self.say({"control": "point", "point": point})
                os.kill(os.getpid(), signal.SIGSTOP)

    def _until(self, until: _Until) -> Value:
        assumed: Value = {"assumed": True} if until.assumed else {}
        return {"deadline": self._time(until.s), **assumed}

    def _time(self, deadline: float | None) -> int | None:
        """Return a deadline as a time of the test, in ns."""
        return None if deadline is None else round(deadline * 1e9) - self.setup["origin_ns"]

    def _event(self, type: str, f: str, value: Value, error: Exception | None = None) -> None:
        with self._speaking:
            event: Value = {
                "time": time.monotonic_ns() - self.setup["origin_ns"],
                "process": self.process,
                "type": type,
                "f": f,
                "value": value,
                "node": self.setup["node"],
            }
            if error is not None:
                text = str(error) if isinstance(error, (Failed, Indeterminate)) else repr(error)
                event["error"] = [getattr(error, "kind", None) or "raised", text]
            self.say(event)

    def say(self, message: Value) -> None:
        line = json.dumps(message).encode() + b"\n"
        with self._speaking:
            while line:
                line = line[os.write(self._out, line) :]


class _Until(NamedTuple):
    """A deadline in s of time.monotonic(); None: unknown. `assumed`: the lock named none."""

    s: float | None
    assumed: bool = False


def _ask(
    f: str, kind: str, verb: Callable[[str, float], Any], name: str, ttl: float
) -> tuple[int | None, _Until, int | None]:
    """Return the token, the deadline and the wakeups that acquire or extend granted. Failed if it
    was refused."""

    def wrong(what: str, meant: str) -> Misuse:
        return Misuse(f"{f} answered {what}; it should be {meant}")

    asked = time.monotonic() + ttl
    answer = _said(kind, lambda: verb(name, ttl))
    if answer is None:
        raise Failed(kind, "the lock said no")
    grant = Grant() if answer is True else answer
    if not isinstance(grant, Grant):
        raise wrong(repr(answer), "True or a Grant (granted), or False (certainly not)")
    token, deadline, wakeups = grant
    if token is not None and not (type(token) is int and -(2**63) <= token < 2**63):
        raise wrong(f"with the token {token!r}", "a whole number of at most 64 bits, or None")
    if wakeups is not None and not (type(wakeups) is int and wakeups >= 0):
        raise wrong(f"with the wakeups {wakeups!r}", "a whole number from 0 on, or None")
    if isinstance(deadline, Deadline):
        return token, _Until(asked, assumed=True), wakeups
    if deadline is not None and not isinstance(deadline, (int, float)):
        raise wrong(f"with the deadline {deadline!r}", "s of time.monotonic(), or None")
    return token, _Until(deadline), wakeups


def _said(kind: str, ask: Callable[[], Any]) -> Any:
    """Return the lock's answer. Failed if it is False; its own Failed gets a kind."""
    try:
        answer = ask()
        if answer is False:
            raise Failed("the lock said no")
    except Failed as error:
        error.kind = error.kind or kind
        raise
    return answer


def _look_at_the_clock(hold: _Hold | None) -> None:
    """Refuse to write if the lease has expired. A pause after this check goes unnoticed."""
    if hold is None or hold.lost:
        raise Failed("refused", "the client knows that it has lost the lock")
    if hold.deadline is not None and time.monotonic() >= hold.deadline:
        raise Failed("refused", "the client's lease has expired, by its own clock")


def _key(value: Value) -> str:
    """Return the key of a resource; a test with one lock has a fixed one."""
    resource = value["resource"]
    return "resource:register" if resource == "account" else "resource:" + resource


class _Store:
    """The resource: a register in Redis, over a minimal implementation of RESP2."""

    def __init__(self, host: str, port: int) -> None:
        self._address = (host, port)
        self._socket: socket.socket | None = None
        self._replies: BinaryIO | None = None

    def call(self, *command: Any) -> Any:
        if self._socket is None:
            self._connect()
        assert self._socket is not None
        parts = [str(part).encode() for part in command]
        bulks = [b"$%d\r\n%b\r\n" % (len(part), part) for part in parts]
        try:
            self._socket.sendall(b"*%d\r\n%b" % (len(parts), b"".join(bulks)))
            return self._reply()
        except OSError as error:
            self.close()
            raise Indeterminate("timeout", f"no reply of the store: {error}") from error

    def _connect(self) -> None:
        try:
            self._socket = socket.create_connection(self._address, CONNECT_S)
        except OSError as error:
            raise Failed("unreachable", f"no connection to the store: {error}") from error
        self._socket.settimeout(REPLY_S)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._replies = self._socket.makefile("rb")

    def _reply(self) -> Any:
        assert self._replies is not None
        line = self._replies.readline().rstrip(b"\r\n").decode()
        sort, rest = line[:1], line[1:]
        if sort == "+":
            return rest
        if sort == ":":
            return int(rest)
        if sort == "-":
            raise Failed("refused", rest)
        if sort == "$":
            length = int(rest)
            return None if length < 0 else self._replies.read(length + 2)[:-2].decode()
        if sort == "*":
            return [self._reply() for _ in range(int(rest))]
        raise OSError("the server closed the connection" if not line else "not RESP: " + line)

    def close(self) -> None:
        if self._replies is not None:
            self._replies.close()
        if self._socket is not None:
            self._socket.close()
        self._socket = self._replies = None


if __name__ == "__main__":
    main(sys.argv[1])
