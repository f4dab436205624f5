"""Leftovers of a killed run on a node are detected and undone by their family."""

from __future__ import annotations

import json
import signal
from dataclasses import dataclass, field

import pytest

from fencepost.nemesis import iptables
from fencepost.nemesis.clock import CLOCK_FILE
from fencepost.nemesis.disk import FILLER
from fencepost.nemesis.families import FAMILIES
from tests.nemesis.site_in_memory import Result

PID = 42
DATA = "/var/lib/fencepost/redis"


@dataclass
class Node:
    """A node and its server, with leftovers."""

    chains: bool = False
    queue: bool = False
    quota: bool = False
    proxy: bool = False
    state_: str | None = "S"
    limit: str = "0"
    files: dict[str, bytes] = field(default_factory=dict)
    skewed: dict[str, dict[str, int]] = field(default_factory=dict)
    kept: bool = False
    data: str = DATA

    def run(self, argv, *, timeout_s=10.0, check=True):
        text = " ".join(argv)
        if "cpu left" in text:
            return Result(json.dumps({"left": self.quota}))
        if "cpu free" in text:
            self.quota = False
        elif "http left" in text:
            return Result(json.dumps({"left": self.proxy}))
        elif "http off" in text:
            self.proxy = False
        elif "qdisc show" in text:
            return Result("qdisc netem fe9c: dev eth0 root" if self.queue else "qdisc noqueue 0:")
        elif "qdisc del" in text:
            self.queue = False
        elif "config get maxmemory" in text:
            return Result(f"maxmemory\n{self.limit}\n" if self.state_ == "S" else "")
        elif "config set maxmemory 0" in text:
            self.limit = "0"
        elif "vdso show" in text:
            return Result(json.dumps({"offset_ns": self.skewed, "kept": self.kept}))
        elif "vdso undo" in text:
            self.skewed, self.kept = {}, False
        elif argv[0] == "test":
            return Result(code=0 if argv[-1] in self.files else 1)
        elif argv[0] == "rm":
            self.files.pop(argv[-1])
        elif argv[0] == "cat":
            return Result(self.files.get(argv[-1], b"").decode())
        return Result()

    def put(self, path, content):
        self.files[path] = content

    def state(self, pid, started=None):
        return self.state_ if pid == PID else None

    def pid(self):
        return PID

    def resume(self):
        self.state_ = "S"
        return PID

    def kill(self):
        self.state_ = None
        return PID

    def signal(self, pid, number):
        assert number == signal.SIGKILL
        return True


@pytest.fixture(autouse=True)
def chains(monkeypatch):
    monkeypatch.setattr(iptables, "there", lambda node: node.chains)
    monkeypatch.setattr(iptables, "clear", lambda node: setattr(node, "chains", False))


def left(node, server=True):
    return [
        (family.name, thing)
        for family in FAMILIES.values()
        for thing in family.leftovers(node, node if server else None)
    ]


LEFT = {
    "partition": (Node(chains=True), "fencepost's iptables chains exist"),
    "packet": (Node(queue=True), "eth0 has a queue"),
    "pause": (Node(state_="T"), "its server is stopped (pid 42)"),
    "clock": (Node(skewed={"42": {"wall": 10}}), "the clocks of 1 process(es) are skewed"),
    "memory": (Node(limit="1000"), "its server's memory is limited"),
    "disk": (Node(files={f"{DATA}/{FILLER}": b"0"}), "its server's disk is full"),
    "cpu": (Node(quota=True), "its server has a CPU quota"),
    "http": (Node(proxy=True), "a proxy meets requests to its server"),
}


@pytest.mark.parametrize("server", [True, False])
def test_on_a_node_of_which_nothing_was_left_nothing_is_found(server):
    assert left(Node(), server) == []


@pytest.mark.parametrize("family", LEFT)
def test_leftovers_of_a_family_are_found_by_it_alone_and_gone_after_the_undo(family):
    node, what = LEFT[family]
    ((name, thing),) = left(node)
    assert (name, thing.what) == (family, what)
    thing.undo()
    assert left(node) == []


def test_a_clock_s_file_that_says_another_time_is_set_right():
    node = Node(files={CLOCK_FILE: b"+5.000000\n"})
    ((name, thing),) = left(node)
    assert (name, thing.what) == ("clock", "its server's clock is off")
    thing.undo()
    assert left(node) == []


def test_a_skew_that_waits_for_the_next_process_is_taken_away():
    node = Node(kept=True)
    ((_, thing),) = left(node)
    assert thing.what == "a skew is left for its next process"
    thing.undo()
    assert left(node) == []


def test_a_server_whose_monotonic_clock_goes_back_is_ended():
    node = Node(skewed={"42": {"wall": 10, "monotonic": 10}})
    ((_, thing),) = left(node)
    thing.undo()
    assert thing.undone == "set the clocks of 1 process(es) right, and ended its server"
    assert node.state_ is None


def test_a_server_whose_wall_clock_alone_was_off_continues():
    node = Node(skewed={"42": {"wall": 10, "monotonic": -3}})
    ((_, thing),) = left(node)
    thing.undo()
    assert node.state_ == "S"
