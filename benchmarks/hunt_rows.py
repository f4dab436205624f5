"""The rows of the hunt's benchmark: known defects, sound settings and speeds, with their
targets."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from fencepost.harness.hunting.hunts import described
from fencepost.harness.spec import from_arguments
from fencepost.harness.spec.simulation import setting_of
from fencepost.hunt.sim.setting import Setting

HERE = Path(__file__).resolve().parents[1]
LIMIT_S, MEDIAN_S = 10.0, 2.0
RATE, LIBRARY_RATE, ASYNCIO_RATE, KAZOO_RATE = 3000, 200, 100, 60
STEPS = 8

Print = Callable[[Any, str, str, bool], bool]
"""Prints a row: its name, the target, the result, and whether the target is met, which it
returns."""


@dataclass(frozen=True)
class Row:
    """One hunt. Without `faults`, all applicable ones; without `goal`, the service's promises.
    `key` selects it. `servers`: of a user lock, whose file is named from the repository on.
    `confirm`: the counterexample is replayed on real servers."""

    key: str
    name: str
    lock: str
    faults: str | None = None
    goal: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    guard: str | None = None
    servers: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    steps: int | None = None
    limit_s: float = LIMIT_S
    median_s: float = MEDIAN_S
    confirm: bool = False

    @property
    def command(self) -> str:
        """Return the command line of this hunt."""
        words = ["fencepost", "hunt", self.lock]
        words += [
            word for name, value in self.options.items() for word in ("-o", f"{name}={value}")
        ]
        given = {"guard": self.guard, "servers": self.servers, "faults": self.faults,
                 "goal": self.goal, **self.settings}  # fmt: skip
        words += [w for name, value in given.items() if value is not None
                  for w in (f"--{name}", str(value))]  # fmt: skip
        return shlex.join([*words, "--confirm"] if self.confirm else words)

    def setting(self) -> Setting:
        if self.servers is not None:
            lock = str(HERE / self.lock)
            return described(lock, {}, {}, servers=self.servers, faults=self.faults).setting
        given = {"concurrency": 2, **self.settings}
        if "server" in given:
            given["server"] = [given["server"]]
        if self.guard is not None:
            given["guard"] = self.guard
        spec = from_arguments.spec(self.lock, self.options, given)
        return setting_of(spec, self.faults, self.goal, self.guard is not None)


KNOWN = (
    Row("redlock-all", "all faults: Redlock", "redlock"),
    Row("c1-kleppmann", "C1 Kleppmann's schedule", "redlock", "clock,partition", steps=STEPS),
    Row("c1-clock", "C1 a clock jumps", "redlock", "clock,partition,pause,delay,packet"),
    Row("c2-forgets", "C2 a server forgets", "redlock", "kill,partition,pause,delay,packet"),
    Row("c3-restart", "C3 delayed restart, and a clock jumps", "redlock", "clock,kill,partition",
        settings={"restart": "after-ttl"}),
    Row("c3-everysec", "C3 everysec, and power is lost", "redlock", "power,partition,pause,delay",
        settings={"persistence": "everysec"}),
    Row("c7-unchecked", "C7 without the clock check",
        "redlock", "pause,partition,delay,packet",
        options={"clock_check": "false"}),
    Row("c9-unguarded", "C9 a write is held back, unguarded",
        "redlock", "delay,packet,partition", guard="none"),
    Row("c10-one", "C10 token of one server", "redlock", None, "fencing", {"token": "one"}),
    Row("c10-majority", "C10 token of a majority",
        "redlock", None, "fencing", {"token": "majority"}),
    Row("c10-value", "C10 token is the random value",
        "redlock", None, "fencing", {"token": "value"}),
    Row("c12-fenced", "C12 two stall, fenced",
        "redis", "pause,delay", "resource", {"token": "incr"}, "fenced"),
    Row("c14-owner", "C14 no owner check", "broken-no-owner-check", None, "ownership"),
    Row("c14-check-then-delete", "C14 check, then delete",
        "broken-check-then-delete", None, "ownership"),
    Row("c15-no-ttl", "C15 no TTL", "broken-no-ttl", None, "liveness"),
    Row("c16-failover", "C16 failover", "redis-replicated"),
    Row("redis-py-clock", "redis-py's lock, and a clock jumps",
        "redis-py", "clock,pause,partition"),
    Row("npm-extension", "npm redlock's failed extension (port)",
        "redlock-npm", "pause,partition,delay,packet",
        limit_s=60, median_s=60),
    Row("redis-py-reply", "redis-py, a reply is lost",
        "redis-py", "packet", "liveness", limit_s=60, median_s=60),
    Row("etcd-3.4", "etcd's lock service of 3.4 grants to a lease that has expired",
        "etcd-lock-api", "pause",
        settings={"server": "etcd=3.4"}, limit_s=60, median_s=60),
    Row("c4-pause", "C4 a client pauses, when asked", "redlock", "pause", "resource", {}, "none"),
)  # fmt: skip
# If the library is installed: pip install redlock-py
LIBRARIES = tuple(
    row for module, row in (
        ("redlock", Row("redlock-py-down", "redlock-py, one server down",
                        "redlock-py", "kill", settings={"restart": "never"},
                        limit_s=60, median_s=60)),
    ) if find_spec(module)
)  # fmt: skip
SOUNDS = (
    Row("redis-sound", "redis, tokens, fenced", "redis", "pause,partition,delay,packet",
        options={"token": "incr"}),
    Row("redlock-sound", "redlock, AOF always, delayed restart, clocks right", "redlock",
        "pause,partition,delay,packet,kill,power",
        settings={"persistence": "always", "restart": "after-ttl"}),
    Row("etcd-sound", "etcd's recipe", "etcd", "pause,partition,packet,kill"),
    Row("chubby-sound", "chubby, its sequencer checked", "chubby", "pause,partition,packet,kill",
        options={"retries": "8", "retry_delay_ms": "1000"}, guard="check-sequencer",
        goal="lease_exclusion,ownership,fencing,liveness,linearizable"),
    *(row for row in (
        Row("zookeeper-sound", "ZooKeeper's recipe", "zookeeper",
            "pause,partition,delay,packet,kill"),
    ) if find_spec("kazoo")),
)  # fmt: skip
RATES = (
    (Row("redlock-speed", "schedules a second: Redlock, two clients, five servers", "redlock",
         "pause,partition,delay,packet"), RATE),
    (Row("redis-py-speed", "schedules a second: redis-py's own lock, on its sockets", "redis-py",
         "pause,partition,delay,packet"), LIBRARY_RATE),
    (Row("asyncio-speed", "schedules a second: a lock on redis.asyncio, one Redis server",
         "tests/hunt/locks_asyncio.py:Right", "pause,partition,delay,packet", servers="redis:1"),
     ASYNCIO_RATE),
    *((row, KAZOO_RATE) for row in (
        Row("kazoo-speed", "schedules a second: kazoo's own lock, three ZooKeeper servers", "kazoo",
            "pause,partition,delay,packet"),
    ) if find_spec("kazoo")),
)  # fmt: skip
