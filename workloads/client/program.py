"""The program of one client: ops in, events out, one JSON object a line.

Standard input takes ops, `{"f": "acquire", "value": {...}}`, and orders:

    {"control": "setup", ...}   who it is, which servers and lock (see `Setup`); answered `ready`
    {"control": "arm", "point": P}   stop this process (SIGSTOP) when it next reaches point P
    {"control": "disarm", "point": P}
    {"control": "work", ...}    run the generator here until `until_ns`; answered `idle`
    {"control": "rest"}         end that early
    {"control": "clock"}        say what the wall clock shows; answered `clock`

Standard output gives events, as DESIGN's history has them but for `index`, and answers, which
have `control` as their first field: `ready`, `idle`, `clock`, and `point`, the last sign before
a stop.
An invocation is written out before its op begins, so that a process that is killed has said
what it had begun. A completion goes out with what is written next, in the same write, or before
anything is waited for: a process that is killed in those microseconds leaves an op that may
have happened, which is true.

A client closes its sessions and connections twice: once its process is gone (an op ended `info`),
and at its own end, when standard input has ended. Where a grant lives by one of them, that is when
the service may end it. So the client writes it down, as an op `close` that nobody sent.

Points: `replies-in-flight` (asked of the last server, reply not read), `acquired` (acquire has
returned), `before-write` (the write is about to be sent).
"""

from __future__ import annotations

import functools
import os
import select
import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from random import Random
from typing import Any, cast

import msgspec

from fencepost.workloads.critical_section import CriticalSection, Next, Settings, work_seed
from fencepost.workloads.locks.lock import Env, Failed, Grant, Indeterminate, Link, Lock, SharedLock
from fencepost.workloads.locks.registry import LOCKS
from fencepost.workloads.redis_link import RedisLink
from fencepost.workloads.resources.registry import GUARDS, STORES
from fencepost.workloads.resources.resource import Resource
from fencepost.workloads.resources.store import Opening

# A write held back in the network must be able to arrive late: GitHub's took 90 s.
RESOURCE_TIMEOUT_S = 120.0
# How long a client that never waits may work before it looks for orders.
LISTEN_NS = 5_000_000


class Setup(msgspec.Struct, frozen=True, kw_only=True):
    """Who this client is. `stride` is added to `process` when a process is gone.

    `addresses` gives each server's [host, port]; `origin_ns` is the test's start on
    CLOCK_MONOTONIC, which all processes of one kernel share and no wall clock touches.
    `write_script` is the Lua script by which a client in another language writes to a Redis store.
    """

    process: int
    stride: int
    node: str
    lock: str
    options: dict[str, Any]
    servers: list[str]
    addresses: dict[str, tuple[str, int]]
    storage: str
    store: str = "redis"
    guard: str
    write_script: str = ""
    seed: str
    origin_ns: int


class NoMoreOrders(Exception):
    """Standard input has ended: the harness is gone, or has no further use for this client."""


class Inbox:
    """Lines of a file descriptor, read with or without waiting."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._lines: list[bytes] = []
        self._rest = b""
        self._poll = select.poll()
        self._poll.register(fd, select.POLLIN | select.POLLHUP)

    def take(self, timeout_s: float | None) -> dict[str, Any] | None:
        """The next line; None where none comes in time (None: wait). NoMoreOrders at the end."""
        while not self._lines:
            if not self._poll.poll(None if timeout_s is None else timeout_s * 1000):
                return None
            chunk = os.read(self._fd, 65536)
            if not chunk:
                raise NoMoreOrders
            *lines, self._rest = (self._rest + chunk).split(b"\n")
            self._lines.extend(lines)
        message: dict[str, Any] = msgspec.json.decode(self._lines.pop(0))
        return message


class Client:
    """Applies ops one at a time and says what came of them."""

    def __init__(self, setup: Setup, out: int) -> None:
        self._setup = setup
        self._origin_ns = setup.origin_ns
        self._out = out
        self._encode = msgspec.json.Encoder().encode
        self._armed: set[str] = set()
        self._process = setup.process
        self._count = 0
        self._unsaid = b""
        self._waits_for: str | None = None
        # A lock's own thread says what becomes of a hold while the client is in an op.
        self._saying = threading.RLock()
        # Until it starts one nobody is to be kept out. A library's threads nobody announces.
        self._alone = not LOCKS[setup.lock].library
        self._verbs = {
            "acquire": self._acquire,
            "extend": self._extend,
            "release": self._release,
            "read": self._read,
            "write": self._write,
        }
        self._open()

    def _open(self) -> None:
        setup = self._setup
        env = Env(
            now=self.now,
            sleep=time.sleep,
            random=Random(f"{setup.seed}/{self._process}"),
            connect=self._connect,
            address=setup.addresses.__getitem__,
            reach=self.reach,
            background=self._background,
            renewed=functools.partial(self._renewed, self._process),
            lost=functools.partial(self._lost, self._process),
            expired=functools.partial(self._expired, self._process),
        )
        make = LOCKS[setup.lock].make
        assert make is not None, f"the client of {setup.lock} is a program of its own"
        self._lock = make(env, setup.servers, setup.options)
        self._guard = GUARDS[setup.guard]
        self._resource = STORES[setup.store].open(
            Opening(env, setup.storage, setup.servers, self._guard, RESOURCE_TIMEOUT_S)
        )
        self._grants: dict[str, Grant] = {}
        self._holds: dict[str, str] = {}
        self._gone: dict[str, str] = {}

    def _background(self, work: Callable[[], None]) -> None:
        self._alone = False
        threading.Thread(target=work, daemon=True).start()

    def _connect(self, node: str, timeout_s: float) -> Link:
        return RedisLink(*self._setup.addresses[node], timeout_s)

    def now(self) -> int:
        return time.monotonic_ns() - self._origin_ns

    def say(self, message: dict[str, Any]) -> None:
        with self._saying:
            self._unsaid += self._encode(message) + b"\n"
            self.flush()

    def flush(self) -> None:
        """Write out what was put off."""
        if self._alone:
            self._write_out()
        else:
            with self._saying:
                self._write_out()

    def _write_out(self) -> None:
        lines, self._unsaid = self._unsaid, b""
        while lines:
            lines = lines[os.write(self._out, lines) :]

    def _event(self, type: str, f: str, value: dict[str, Any], error: Failed | None = None) -> None:
        """Put an event off until `flush`, stamped now."""
        event: dict[str, Any] = {
            "time": self.now(),
            "process": self._process,
            "type": type,
            "f": f,
            "value": value,
            "node": self._setup.node,
        }
        if error is not None:
            event["error"] = [error.kind, error.text]
        line = self._encode(event) + b"\n"
        if self._alone:
            self._unsaid += line
            return
        with self._saying:
            self._unsaid += line

    def _renewed(self, process: int, secret: str, deadline: int) -> None:
        """A lease runs on, says the lock's own thread; nobody has asked."""
        with self._saying:
            hold = self._holds.get(secret)
            if process == self._process and hold is not None:
                name = self._grants[hold].name
                self._grants[hold] = replace(self._grants[hold], deadline=deadline)
                self._event("info", "renewed", {"lock": name, "hold": hold, "deadline": deadline})
                self.flush()

    def _lost(self, process: int, secret: str, why: str) -> None:
        """A hold is over, says the lock's own thread; perhaps before `acquire` returned it."""
        with self._saying:
            if process != self._process or secret in self._gone:
                return
            self._gone[secret] = why
            hold = self._holds.get(secret)
            if hold is not None:
                self._say_lost(hold, why)

    def _expired(self, process: int, why: str) -> None:
        """The service ended the lease or session with which this client waits for a grant."""
        with self._saying:
            if process == self._process and self._waits_for is not None:
                value = {"lock": self._waits_for, "hold": None}
                self._event("info", "lost", value, Failed("expired", why))
                self.flush()

    def _say_lost(self, hold: str, why: str) -> None:
        value = {"lock": self._grants[hold].name, "hold": hold}
        self._event("info", "lost", value, Failed("lost", why))
        self.flush()

    def arm(self, point: str) -> None:
        self._armed.add(point)

    def disarm(self, point: str) -> None:
        self._armed.discard(point)

    def tell_clock(self) -> None:
        """Say how far the wall clock is ahead of the monotonic one: bounds, in ns."""
        before = time.monotonic_ns()
        wall = time.time_ns()
        after = time.monotonic_ns()
        self.say({"control": "clock", "low_ns": wall - after, "high_ns": wall - before})

    def reach(self, point: str) -> None:
        if point in self._armed:
            self._armed.remove(point)
            with self._saying:  # nothing is said between this and the stop
                self.say({"control": "point", "point": point, "process": self._process})
                os.kill(os.getpid(), signal.SIGSTOP)

    def apply(self, f: str, asked: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        """Do one op, from its invocation to its completion; how it ended, and its value.

        The completion is put off: `flush` before anything is waited for.
        """
        verb, value = self._verbs[f], self._complete(f, asked)
        self._event("invoke", f, value)
        self.flush()
        try:
            answer: dict[str, Any] = value | verb(value)
        except Indeterminate as error:
            return self._failed("fail" if f == "read" else "info", f, value, error)
        except Failed as error:
            return self._failed("fail", f, value, error)
        self._event("ok", f, answer)
        if f == "acquire":
            if self._gone:
                self._say_if_lost_already(answer["hold"])
            self.reach("acquired")
        return "ok", answer

    def _say_if_lost_already(self, hold: str) -> None:
        with self._saying:
            grant = self._grants[hold]
            if grant.secret in self._gone:
                self._say_lost(hold, self._gone[grant.secret])

    def _failed(
        self, type: str, f: str, value: dict[str, Any], error: Failed
    ) -> tuple[str, dict[str, Any]]:
        self._event(type, f, value, error)
        if type == "info":
            self._succeed()
        return type, value

    def _succeed(self) -> None:
        """Become one's own successor: nothing is left of the process that is gone."""
        self.close()
        with self._saying:  # what a thread of the old lock still says is dropped from here on
            self._process += self._setup.stride
        self._open()

    def close(self) -> None:
        """Close sessions and connections, as an op of the current process.

        A lock's close may raise. Nothing is lost by that: whether the service was told is unknown,
        which is what `info` says, and a successor opens connections of its own.
        """
        self._event("invoke", "close", {})
        self.flush()
        errors = [error for part in (self._lock, self._resource) if (error := _closed(part))]
        if errors:
            self._event("info", "close", {}, errors[0])
        else:
            self._event("ok", "close", {})

    def _complete(self, f: str, asked: dict[str, Any]) -> dict[str, Any]:
        """A write's value, unique in the run, and the token of the hold that it belongs to."""
        if f != "write":
            return asked
        self._count += 1
        grant = self._grants.get(asked.get("hold", ""))
        value = f"{self._setup.node}.{self._process}.{self._count}"
        written = {"value": value, "token": grant.token if grant else None, **asked}
        return written if grant is None or grant.minor is None else written | {"minor": grant.minor}

    def _acquire(self, value: dict[str, Any]) -> dict[str, Any]:
        self._waits_for = value["lock"]
        try:
            if value.get("mode") == "shared":
                grant = cast(SharedLock, self._lock).acquire_shared(value["lock"], value["ttl"])
            else:
                grant = self._lock.acquire(value["lock"], value["ttl"])
        finally:
            self._waits_for = None
        self._count += 1
        hold = f"{self._process}-{self._count}"
        answer = {"token": grant.token, "deadline": grant.deadline, "hold": hold}
        if grant.minor is not None:
            answer["minor"] = grant.minor
        if grant.wakeups is not None:
            answer["wakeups"] = grant.wakeups
        if self._alone:
            self._grants[hold], self._holds[grant.secret] = grant, hold
        else:
            with self._saying:
                self._grants[hold], self._holds[grant.secret] = grant, hold
        return answer

    def _extend(self, value: dict[str, Any]) -> dict[str, Any]:
        grant = self._lock.extend(self._granted(value), value["ttl"])
        self._grants[value["hold"]] = grant
        return {"deadline": grant.deadline}

    def _release(self, value: dict[str, Any]) -> dict[str, Any]:
        grant = self._granted(value)
        with self._saying:
            del self._grants[value["hold"]]
            self._holds.pop(grant.secret, None)
        self._lock.release(grant)
        return {}

    def _read(self, value: dict[str, Any]) -> dict[str, Any]:
        content, version = self._resource.read(value["resource"])
        return {"value": content, "version": version}

    def _write(self, value: dict[str, Any]) -> dict[str, Any]:
        grant = self._grants.get(value.get("hold", ""))
        if self._guard.looks_at_clock:
            self._look_at_the_clock(grant)
        self.reach("before-write")
        try:
            stored = self._resource.write(
                value["resource"], value["value"], value["version"], grant
            )
        except Indeterminate:
            raise
        except Failed as error:
            if error.kind == "refused":
                self._settle(value.get("hold", ""))
            raise
        self._settle(value.get("hold", ""))
        return {"stored": stored}

    def _settle(self, hold: str) -> None:
        """The resource has seen this hold's token, and refuses earlier ones from now on."""
        with self._saying:
            if hold in self._grants:
                self._grants[hold] = replace(self._grants[hold], settled=True)

    def _look_at_the_clock(self, grant: Grant | None) -> None:
        """What a careful client does before it writes; what happens after that is not its care."""
        if grant is None or grant.secret in self._gone:
            raise Failed("refused", "the client knows that it has lost the lock")
        if grant.deadline is not None and self.now() >= grant.deadline:
            raise Failed("refused", "the client's lease is over, by its own clock")

    def _granted(self, value: dict[str, Any]) -> Grant:
        grant = self._grants.get(value["hold"])
        if grant is None:
            raise Failed("not-held", f"this process has no hold {value['hold']}")
        return grant


def _closed(part: Lock | Resource) -> Failed | None:
    """Close one of a client's two sides; what went wrong, if anything did."""
    try:
        part.close()
    except Failed as error:
        return error
    except Exception as error:  # whatever a library raises
        return Failed("raised", repr(error))
    return None


def work(client: Client, inbox: Inbox, order: dict[str, Any], seed: str) -> None:
    """Run the generator until `until_ns` or `rest`, then give back the hold there may be."""
    section = CriticalSection(msgspec.convert(order["settings"], Settings), seed)
    step, until = section.first(), order["until_ns"]
    listened = 0
    over = False
    while True:
        now = client.now()
        if step.after_s or now - listened > LISTEN_NS:
            client.flush()
            over = _wait(client, inbox, step, until) or over
            listened = now
        over = over or now >= until
        if over and step.f == "acquire":
            break
        step = section.next(step.f, *client.apply(step.f, step.value))
    client.say({"control": "idle"})


def _wait(client: Client, inbox: Inbox, step: Next, until: int) -> bool:
    """Wait as long as the step wants, taking orders; True once told to rest."""
    left_s = min(step.after_s, max(0.0, (until - client.now()) / 1e9))
    end = client.now() + int(left_s * 1e9)
    while True:
        order = inbox.take(max(0.0, (end - client.now()) / 1e9))
        if order is None:
            return False
        if order.get("control") in ("arm", "disarm"):
            getattr(client, order["control"])(order["point"])
        elif order.get("control") == "clock":
            client.tell_clock()
        elif order.get("control") == "rest":
            return True


def orders(inbox: Inbox) -> Iterator[dict[str, Any]]:
    while True:
        order = inbox.take(None)
        assert order is not None
        yield order


def main() -> None:
    """Serve until standard input ends: the harness is gone then, and so is the test."""
    inbox = Inbox(0)
    try:
        setup = msgspec.convert(inbox.take(None), Setup)
    except NoMoreOrders:
        return
    client = Client(setup, 1)
    client.say({"control": "ready", "pid": os.getpid()})
    try:
        _serve(client, inbox, work_seed(setup.seed, setup.process))
    except NoMoreOrders:
        client.close()
        client.flush()


def _serve(client: Client, inbox: Inbox, seed: str) -> None:
    for order in orders(inbox):
        if "f" in order:
            client.apply(order["f"], order.get("value", {}))
            client.flush()
        elif order["control"] in ("arm", "disarm"):
            getattr(client, order["control"])(order["point"])
        elif order["control"] == "clock":
            client.tell_clock()
        elif order["control"] == "work":
            work(client, inbox, order, seed)


if __name__ == "__main__":
    main()
