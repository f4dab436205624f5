"""A cluster in memory in which each kind of fault takes effect, or has its effect disabled.

`deaf` names the disabled effects: "rules" (packets pass despite iptables), "signals" (they reach
another process), "clock" (no process reads the clock's file, and another process' vDSO is
rewritten), "restart" (a server that was started does not serve).
"""

from __future__ import annotations

import json
import signal
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from fencepost.nemesis.clock import CLOCK_FILE
from fencepost.nemesis.iptables import Rule
from fencepost.nemesis.site import Hidden

SERVERS = [f"redis-{n}" for n in range(1, 6)]
CLIENTS = [f"client-{n}" for n in range(1, 4)]
NODES = [*SERVERS, *CLIENTS, "storage"]


@dataclass(frozen=True)
class Result:
    out: str = ""
    err: str = ""
    code: int = 0


@dataclass
class Clocks:
    """The clocks of a node's process; `file_s` is its last value from libfaketime's file.

    The shown time is truncated to `grain_s`; `hidden` are the clocks that it does not show.
    """

    file_s: float = 0.0
    set_: dict[str, tuple[float, float, float, float]] = field(default_factory=dict)
    ahead_s: float = 0.0
    grain_s: float = 0.0
    hidden: set[str] = field(default_factory=set)

    def offset_s(self, clock: str) -> float:
        offset_s, rate, period_s, since_s = self.set_.get(clock, (0.0, 1.0, 0.0, 0.0))
        passed_s = time.monotonic() - since_s
        if period_s and int(passed_s / period_s) % 2:
            offset_s = 0.0
        own_s = self.file_s if clock == "wall" else self.ahead_s
        return own_s + offset_s + passed_s * (rate - 1)

    def vdso(self, verb: str, pid: str, **options: str) -> dict[str, object]:
        before = {clock: self.offset_s(clock) for clock in ("wall", "monotonic")}
        if verb == "show":
            return {"offset_ns": {pid: {clock: s * 1e9 for clock, s in before.items() if s}}}
        self.ahead_s = max(0.0, before["monotonic"])
        self.set_ = {}
        if verb == "rest":
            return {"offset_ns": {pid: {"monotonic": self.ahead_s * 1e9} if self.ahead_s else {}}}
        skew = (int(options["offset_ns"]) / 1e9, float(options["rate"]))
        for clock in options["clocks"].split(","):
            self.set_[clock] = (*skew, int(options["period_ns"]) / 1e9, time.monotonic())
        return {"ahead_ns": self.ahead_s * 1e9}

    def look(self, clock: str) -> tuple[float, float]:
        now_s = time.time()
        shown_s = now_s + self.offset_s(clock)
        if self.grain_s:
            shown_s -= shown_s % self.grain_s
        return shown_s - now_s - 1e-5, shown_s + self.grain_s - now_s + 1e-5


@dataclass
class Node:
    """Remote, Server and Client of one node at once, as far as the nemesis uses them."""

    site: Site
    name: str
    pid_: int
    process: int = 0
    states: dict[int, str] = field(default_factory=dict)
    rules: list[Rule] = field(default_factory=list)
    hits: Counter[Rule] = field(default_factory=Counter)
    queue: str = "qdisc noqueue 0: root refcnt 2"
    wiped: int = 0
    born: int = 0
    clocks: Clocks = field(default_factory=lambda: Clocks())
    points: set[str] = field(default_factory=set)
    armed: set[str] = field(default_factory=set)
    threads: tuple[str, ...] = ()
    held: list[str] = field(default_factory=list)
    connection: int = 0
    extends: bool = True
    counts: bool = False
    then: str = ""
    unsent: list[int] = field(default_factory=list)

    def run(self, argv: Sequence[str], *, timeout_s: float = 10.0, check: bool = True) -> Result:
        if argv[:2] == ["fencepost-node", "vdso"]:
            return Result(json.dumps(self.vdso(argv[2:])))
        if argv[:2] == ["fencepost-node", "threads"]:
            return self.hold_threads(argv[2], int(argv[3]))
        return self.tc(argv)

    def hold_threads(self, verb: str, pid: int) -> Result:
        """`threads`: their names; those that are `held` are paused."""
        if not self.threads and verb == "hold":
            return Result(err=f"process {pid} has no thread other than its main one", code=1)
        if "threads" not in self.site.deaf:
            self.held = list(self.threads) if verb == "hold" else []
        rows = [
            {"tid": pid + place, "name": name, "state": "t" if name in self.held else "S"}
            for place, name in enumerate(self.threads, 1)
        ]
        main = "t" if "main" in self.held else "R"
        return Result(json.dumps({"threads": rows, "main": main}))

    # Replaces nemesis/iptables.py.

    def write(self, rules: list[Rule]) -> None:
        self.rules = list(rules)
        self.hits = Counter(dict.fromkeys(rules, 0))

    def connect(self, ends: dict[str, tuple[str, int]]) -> dict[str, str]:
        return {node: self.site.meets(self.name, node) for node in ends}

    def send_datagram(self, address: str) -> None:
        self.site.passes(self.name, self.site.at(address), "udp")

    def tc(self, argv: Sequence[str]) -> Result:
        if argv[0] == "ip":
            return Result("10.0.0.9 dev eth0 src 10.0.0.1 uid 0")
        verb = argv[2]
        if verb in ("add", "replace"):
            if "sch_netem" in self.site.deaf:
                return Result(err="Error: Specified qdisc kind is unknown.", code=2)
            if "tc" not in self.site.deaf:
                self.queue = "qdisc netem fe9c: root refcnt 2 limit 1000"
        elif verb == "del":
            self.queue = "qdisc noqueue 0: root refcnt 2"
        return Result(self.queue)

    def meets(self, way: str, address: str, kind: str, port: str = "") -> bool:
        """Return whether a packet gets through this node's chain, and count it in its rules."""
        for rule in self.rules:
            if rule.port not in ("", port):
                continue
            if rule.share < 1:
                self.hits[rule] += 1  # one of those that it loses; this one passes
                continue
            if rule.verdict == "RESET":
                continue  # the resets of its own kernel
            if (rule.way, rule.address) == (way, address) and (
                rule.verdict or rule.port or kind == "udp"
            ):
                if rule.verdict == "REJECT" and kind == "udp":
                    continue
                self.hits[rule] += 1
                if rule.verdict:
                    return False
        return True

    def put(self, path: str, content: bytes) -> None:
        assert path == CLOCK_FILE
        if "clock" not in self.site.deaf:
            self.clocks.file_s = float(content)

    def vdso(self, words: Sequence[str]) -> dict[str, object]:
        verb, *rest = words
        pid = rest.pop(0) if rest and rest[0].isdigit() else str(self.pid_)
        assert pid == str(self.pid_)
        names = [name.removeprefix("--").replace("-", "_") for name in rest[::2]]
        # The clocks of a process that no test reads.
        clocks = Clocks() if "clock" in self.site.deaf else self.clocks
        return clocks.vdso(verb, pid, **dict(zip(names, rest[1::2], strict=True)))

    @property
    def shown_clocks(self) -> tuple[str, ...]:
        return ("wall",) if self.name.startswith(("redis", "client")) else ("wall", "monotonic")

    @property
    def reads_clock_file(self) -> bool:
        return self.name.startswith("redis")

    def mark_clock(self, clock: str) -> dict[str, float]:
        if self.name.startswith("etcd") and clock == "monotonic":
            return {"from_s": self.clocks.offset_s(clock)}
        return {}

    def look_at_clock(self, clock: str, mark: dict[str, float]) -> tuple[float, float]:
        if clock in self.clocks.hidden:
            raise Hidden("it is no leader")
        low_s, high_s = self.clocks.look(clock)
        from_s = mark.get("from_s", 0.0)
        return low_s - from_s, high_s - from_s

    def signal(self, pid: int, number: int, started: str | None = None) -> bool:
        if "signals" not in self.site.deaf:
            if number == signal.SIGUSR1:
                self.cancelled += 1
                return pid in self.states
            after = {signal.SIGSTOP: "T", signal.SIGCONT: "S"}.get(signal.Signals(number))
            if after is None:
                self.states.pop(pid, None)
            elif pid in self.states:
                stops_again = after == "S" and self.then in self.points & self.armed
                self.states[pid] = "T" if stops_again else after
                self.then = ""
        return pid in self.states or number == signal.SIGKILL

    def state(self, pid: int, started: str | None = None) -> str | None:
        return self.states.get(pid)

    started = None

    @property
    def pid(self):
        # A server is asked for it, a client has it.
        return (lambda: self.pid_) if self.name not in CLIENTS else self.pid_

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

    def start(self, **changed: str) -> None:
        self.born += "restart" not in self.site.deaf
        self.pid_ += 1000
        self.states[self.pid_] = "S"

    def wait_ready(self, timeout_s: float = 30.0) -> None:
        if "restart" in self.site.deaf:
            raise RuntimeError(f"{self.name} did not get ready")

    removed_by_others = False

    def wipe(self) -> None:
        self.wiped += 1

    def identity(self) -> str:
        return f"run {self.born}"

    def answered(self, f: str) -> int:
        return 0

    def arm(self, point: str, then: str = "") -> None:
        self.armed |= {point, then} - {""}
        self.then = then
        if point in self.points:
            self.states[self.pid_] = "T"
        self.after_arming()

    def after_arming(self) -> None:
        """Do nothing; a test may have something happen at that moment."""

    def disarm(self, point: str) -> None:
        self.armed.discard(point)

    def wait_failpoint(self, point: str, timeout_s: float) -> bool:
        return point in self.points & self.armed

    at_point: str | None = None
    cancelled = 0
    cancelled_later = False

    def wait_cancelled(self, before: int, timeout_s: float) -> bool:
        return self.cancelled > before

    def leave_failpoint(self) -> None:
        self.at_point = None

    def wait_gone(self, timeout_s: float) -> None:
        self.site.waited_gone.append(self.name)


class Site:
    clients = CLIENTS

    def __init__(self, servers: Sequence[str] = SERVERS) -> None:
        self.servers = list(servers)
        self.deaf: set[str] = set()
        self.waited_gone: list[str] = []
        self.leader: str | None = None
        self.held: dict[str, float] = {}
        self.late: set[str] = set()
        self.granted: Counter[str] = Counter()
        self.nodes = {
            name: Node(self, name, 100 + n, n)
            for n, name in enumerate([*servers, *CLIENTS, "storage"])
        }
        for node in self.nodes.values():
            node.states[node.pid_] = "S"

    def remote(self, node):
        return self.nodes[node]

    server = own_server = client = remote

    def restart_client(self, node):
        self.nodes[node].start()
        self.nodes[node].process += len(CLIENTS)
        return self.nodes[node]

    def primary(self):
        return self.leader

    def holder(self, for_s):
        """`held`: for how long each client has held a lock, in s, the latest grant first."""
        return next((node for node, held_s in self.held.items() if held_s >= for_s), None)

    def leased(self):
        return list(self.held)

    def released_late(self, node):
        return node in self.late

    def grants(self, without):
        return sum(count for node, count in self.granted.items() if node != without)

    def at(self, address):
        return next(node for node in self.nodes if self.address(node) == address)

    def address(self, node):
        return f"10.0.0.{NODES.index(node) + 1}"

    def port(self, node):
        return 6379 if node in SERVERS else None

    def passes(self, source: str, target: str, kind: str = "tcp", port: str = "") -> bool:
        """Return whether a packet from one node reaches the other, on the port's connection."""
        if "rules" in self.deaf:
            return True
        out = self.nodes[source].meets("OUT", self.address(target), kind, port)
        return out and self.nodes[target].meets("IN", self.address(source), kind, port)

    def meets(self, source: str, target: str) -> str:
        """Return a probe's result: the request and its answer must both get through."""
        if not self.passes(source, target):
            # The matching rule rejects the packet, so that the sender knows, or drops it.
            node, address = self.nodes[source], self.address(target)
            resets = Rule("IN", address, "RESET"), Rule("IN", address)
            at = [node.rules.index(rule) for rule in resets if rule in node.rules]
            arrives = len(at) == 2 and at[0] < at[1]
            rejected = node.hits[Rule("OUT", address, "REJECT")]
            return "refused" if rejected and arrives else "silent"
        if not self.passes(target, source):
            return "silent"
        return "open" if self.nodes[target].states.get(self.nodes[target].pid_) else "refused"
