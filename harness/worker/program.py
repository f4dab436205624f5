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

Points: `replies-in-flight` (asked of the last server, reply not read), `acquired` (acquire has
returned), `before-write` (the write is about to be sent).
"""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Iterator
from random import Random
from typing import Any

import msgspec

from workloads.critical_section import CriticalSection, Next, Settings
from workloads.locks.lock import Env, Failed, Grant, Indeterminate, Link
from workloads.locks.registry import LOCKS
from workloads.redis_link import RedisLink
from workloads.resources.redis_register import RedisRegister

# A write held back in the network must be able to arrive late: GitHub's took 90 s.
RESOURCE_TIMEOUT_S = 120.0
# How long a client that never waits may work before it looks for orders.
LISTEN_NS = 5_000_000


class Setup(msgspec.Struct, frozen=True, kw_only=True):
    """Who this client is. `stride` is added to `process` when a process is gone.

    `addresses` gives each server's [host, port]; `origin_ns` is the test's start on
    CLOCK_MONOTONIC, which all processes of one kernel share and no wall clock touches.
    """

    process: int
    stride: int
    node: str
    lock: str
    options: dict[str, Any]
    servers: list[str]
    addresses: dict[str, tuple[str, int]]
    storage: str
    guard: str
    seed: str
    origin_ns: int


class Inbox:
    """Lines of a file descriptor, read with or without waiting."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._lines: list[bytes] = []
        self._rest = b""
        self._poll = select.poll()
        self._poll.register(fd, select.POLLIN | select.POLLHUP)

    def take(self, timeout_s: float | None) -> dict[str, Any] | None:
        """The next line; None where none comes in time (None: wait). EOFError at the end."""
        while not self._lines:
            if not self._poll.poll(None if timeout_s is None else timeout_s * 1000):
                return None
            chunk = os.read(self._fd, 65536)
            if not chunk:
                raise EOFError
            *lines, self._rest = (self._rest + chunk).split(b"\n")
            self._lines.extend(lines)
        message: dict[str, Any] = msgspec.json.decode(self._lines.pop(0))
        return message


class Client:
    """Applies ops one at a time and says what came of them."""

    def __init__(self, setup: Setup, out: int) -> None:
        self._setup = setup
        self._out = out
        self._encode = msgspec.json.Encoder().encode
        self._armed: set[str] = set()
        self._process = setup.process
        self._count = 0
        self._unsaid = b""
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
            reach=self.reach,
        )
        self._lock = LOCKS[setup.lock].make(env, setup.servers, setup.options)
        storage = self._connect(setup.storage, RESOURCE_TIMEOUT_S)
        self._resource = RedisRegister(storage, "register", setup.guard)
        self._grants: dict[str, Grant] = {}

    def _connect(self, node: str, timeout_s: float) -> Link:
        return RedisLink(*self._setup.addresses[node], timeout_s)

    def now(self) -> int:
        return time.monotonic_ns() - self._setup.origin_ns

    def say(self, message: dict[str, Any]) -> None:
        self._unsaid += self._encode(message) + b"\n"
        self.flush()

    def flush(self) -> None:
        """Write out what was put off."""
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
        self._unsaid += self._encode(event) + b"\n"

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
            self.reach("acquired")
        return "ok", answer

    def _failed(
        self, type: str, f: str, value: dict[str, Any], error: Failed
    ) -> tuple[str, dict[str, Any]]:
        self._event(type, f, value, error)
        if type == "info":
            self._succeed()
        return type, value

    def _succeed(self) -> None:
        """Become one's own successor: nothing is left of the process that is gone."""
        self._lock.close()
        self._resource.close()
        self._process += self._setup.stride
        self._open()

    def _complete(self, f: str, asked: dict[str, Any]) -> dict[str, Any]:
        """A write's value, unique in the run, and the token of the hold that it belongs to."""
        if f != "write":
            return asked
        self._count += 1
        grant = self._grants.get(asked.get("hold", ""))
        value = f"{self._setup.node}.{self._process}.{self._count}"
        return {"value": value, "token": grant.token if grant else None, **asked}

    def _acquire(self, value: dict[str, Any]) -> dict[str, Any]:
        grant = self._lock.acquire(value["lock"], value["ttl"])
        self._count += 1
        hold = f"{self._process}-{self._count}"
        self._grants[hold] = grant
        return {"token": grant.token, "deadline": grant.deadline, "hold": hold}

    def _extend(self, value: dict[str, Any]) -> dict[str, Any]:
        grant = self._lock.extend(self._granted(value), value["ttl"])
        self._grants[value["hold"]] = grant
        return {"deadline": grant.deadline}

    def _release(self, value: dict[str, Any]) -> dict[str, Any]:
        grant = self._granted(value)
        del self._grants[value["hold"]]
        self._lock.release(grant)
        return {}

    def _read(self, value: dict[str, Any]) -> dict[str, Any]:
        content, version = self._resource.read()
        return {"value": content, "version": version}

    def _write(self, value: dict[str, Any]) -> dict[str, Any]:
        self.reach("before-write")
        grant = self._grants.get(value.get("hold", ""))
        return {"stored": self._resource.write(value["value"], value["version"], grant)}

    def _granted(self, value: dict[str, Any]) -> Grant:
        grant = self._grants.get(value["hold"])
        if grant is None:
            raise Failed("not-held", f"this process has no hold {value['hold']}")
        return grant


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
        first = inbox.take(None)
        setup = msgspec.convert(first, Setup)
        client = Client(setup, 1)
        client.say({"control": "ready", "pid": os.getpid()})
        for order in orders(inbox):
            if "f" in order:
                client.apply(order["f"], order.get("value", {}))
                client.flush()
            elif order["control"] in ("arm", "disarm"):
                getattr(client, order["control"])(order["point"])
            elif order["control"] == "clock":
                client.tell_clock()
            elif order["control"] == "work":
                work(client, inbox, order, f"{setup.seed}/{setup.process}/work")
    except EOFError:
        return


if __name__ == "__main__":
    main()
