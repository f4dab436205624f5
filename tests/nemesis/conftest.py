"""A cluster in memory whose faults take hold, or do not: each kind can be made to do nothing.

`deaf` names what is without effect: "rules" (packets pass whatever iptables says), "signals"
(they reach another process), "clock" (nobody reads the clock's file), "restart" (a server that
was started does not serve).
"""

from __future__ import annotations

import re
import signal
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from checker.history import History, Op
from nemesis import kill, pause
from nemesis.chains import CHAINS
from nemesis.clock import CLOCK_FILE
from nemesis.director import Director

SERVERS = [f"redis-{n}" for n in range(1, 6)]
CLIENTS = [f"client-{n}" for n in range(1, 4)]
NODES = [*SERVERS, *CLIENTS]
_PROBE = re.compile(r"/dev/tcp/\S+/\d+' 2>/dev/null; echo (\S+) \$\?")
_RULE = re.compile(r"^-A (\S+) -([sd]) (\S+) -j DROP$", re.MULTILINE)


@dataclass(frozen=True)
class Result:
    out: str = ""
    err: str = ""
    code: int = 0


@dataclass
class Node:
    """Remote, Server and Client of one node at once, as far as the nemesis looks at them."""

    site: Site
    name: str
    pid_: int
    process: int = 0
    states: dict[int, str] = field(default_factory=dict)
    rules: set[tuple[str, str, str]] = field(default_factory=set)
    packets: int = 0
    offset_s: float = 0.0
    points: set[str] = field(default_factory=set)
    armed: set[str] = field(default_factory=set)

    def run(self, argv: Sequence[str], *, timeout_s: float = 10.0, check: bool = True) -> Result:
        text = argv[-1]
        if "iptables-restore" in text:
            assert set(re.findall(r"^:(\S+) ", text, re.MULTILINE)) == set(CHAINS.values())
            self.rules = set(_RULE.findall(text))
        elif "/dev/tcp/" in text:
            met = ((node, self.site.meets(self.name, node)) for node in _PROBE.findall(text))
            return Result("".join(f"{node} {code}\n" for node, code in met))
        elif argv[0] == "iptables":
            return Result(f"Chain\nhead\n{self.packets} 60 DROP all\n" if self.rules else "c\nh\n")
        else:
            assert "iptables -w -N" in text, text
        return Result()

    def put(self, path: str, content: bytes) -> None:
        assert path == CLOCK_FILE
        if "clock" not in self.site.deaf:
            self.offset_s = float(content)

    def signal(self, pid: int, number: int) -> bool:
        if "signals" not in self.site.deaf:
            after = {signal.SIGSTOP: "T", signal.SIGCONT: "S"}.get(signal.Signals(number))
            if after is None:
                self.states.pop(pid, None)
            elif pid in self.states:
                self.states[pid] = after
        return pid in self.states or number == signal.SIGKILL

    def state(self, pid: int) -> str | None:
        return self.states.get(pid)

    @property
    def pid(self):
        # A server is asked for it, a client has it.
        return (lambda: self.pid_) if self.name in SERVERS else self.pid_

    def _signalled(self, number: int) -> int | None:
        there = self.pid_ in self.states
        self.signal(self.pid_, number)
        return self.pid_ if there else None

    def kill(self) -> int | None:
        return self._signalled(signal.SIGKILL)

    def pause(self) -> int | None:
        return self._signalled(signal.SIGSTOP)

    def resume(self) -> int | None:
        return self._signalled(signal.SIGCONT)

    def start(self) -> None:
        self.pid_ += 1000
        self.states[self.pid_] = "S"

    def wait_ready(self, timeout_s: float = 30.0) -> None:
        if "restart" in self.site.deaf:
            raise RuntimeError(f"{self.name} did not get ready")

    def clock_offset_s(self) -> float:
        return self.offset_s

    def arm(self, point: str) -> None:
        self.armed.add(point)
        if point in self.points:
            self.states[self.pid_] = "T"

    def disarm(self, point: str) -> None:
        self.armed.discard(point)

    def wait_point(self, point: str, timeout_s: float) -> bool:
        return point in self.points & self.armed

    def wait_gone(self, timeout_s: float) -> None:
        self.site.waited_gone.append(self.name)


class Site:
    servers, clients = SERVERS, CLIENTS

    def __init__(self) -> None:
        self.deaf: set[str] = set()
        self.waited_gone: list[str] = []
        self.nodes = {name: Node(self, name, 100 + n, n) for n, name in enumerate(NODES)}
        for node in self.nodes.values():
            node.states[node.pid_] = "S"

    def remote(self, node):
        return self.nodes[node]

    server = client = remote

    def restart_client(self, node):
        self.nodes[node].start()
        self.nodes[node].process += len(CLIENTS)
        return self.nodes[node]

    def address(self, node):
        return f"10.0.0.{NODES.index(node) + 1}"

    def port(self, node):
        return 6379 if node in SERVERS else None

    def passes(self, source: str, target: str) -> bool:
        """Whether a packet from one node reaches the other."""
        sent = ("FENCEPOST-OUT", "d", self.address(target)) in self.nodes[source].rules
        taken = ("FENCEPOST-IN", "s", self.address(source)) in self.nodes[target].rules
        if "rules" not in self.deaf and taken:
            self.nodes[target].packets += 1
        return "rules" in self.deaf or not (sent or taken)

    def meets(self, source: str, target: str) -> int:
        """A probe's exit code: the request and its answer must both come through."""
        if not (self.passes(source, target) and self.passes(target, source)):
            return 124
        return 0 if self.nodes[target].states.get(self.nodes[target].pid_) else 1


@pytest.fixture
def site(monkeypatch):
    monkeypatch.setattr(pause, "_STATE_S", 0.01)
    monkeypatch.setattr(kill, "_GONE_S", 0.01)
    return Site()


class Recorded:
    """The ops that a director wrote, and its history."""

    def __init__(self) -> None:
        self.ops: list[Op] = []

    def __call__(self, type, f, value, error):
        self.ops.append(Op(len(self.ops), len(self.ops), "nemesis", type, f, value, error))

    def history(self) -> History:
        return History(list(self.ops))


@pytest.fixture
def recorded():
    return Recorded()


@pytest.fixture
def director(site, recorded):
    return Director(site, recorded)
