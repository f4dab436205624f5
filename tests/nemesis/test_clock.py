"""A clock fault is proved by the process' own time, and never by one that fits a right clock."""

from __future__ import annotations

import math
import sys
from random import Random
from types import SimpleNamespace

import pytest

from fencepost.harness.servers.kinds import KINDS
from fencepost.nemesis import skewed
from fencepost.nemesis.clock import Clock, Skew, draw, must_show
from fencepost.nemesis.fault_spec import Asked
from fencepost.nemesis.nemesis import Fault
from fencepost.nemesis.targets import Layout

SERVERS = ["redis-1", "etcd-1", "etcd-2", "zookeeper-1"]
BOTH = ["wall", "monotonic"]


def fault(*targets, **arguments):
    return Fault("c", "clock", list(targets), arguments)


FAULTS = [
    fault("redis-1", offset_s=0.01),
    fault("redis-1", offset_s=-7200.0),
    fault("redis-1", kind="drift", rate=1.5),
    fault("redis-1", kind="drift", rate=0),
    fault("redis-1", kind="strobe", offset_s=-0.2, period_s=0.02),
    fault("zookeeper-1", offset_s=3.0, clocks=BOTH),
    fault("etcd-1", offset_s=4.0, clocks=BOTH),
    fault("etcd-1", offset_s=-4.0, clocks=["monotonic"]),
    fault("client-1", offset_s=60.0),
    fault("client-1", kind="strobe", offset_s=1.0, period_s=0.02),
    fault("zookeeper-1", "redis-1", "client-2", offset_s=1.0),
]
each = pytest.mark.parametrize("fault", FAULTS, ids=lambda f: f"{f.targets} {f.arguments}")


@pytest.fixture
def site(site):
    return type(site)(SERVERS)


@pytest.fixture
def clocks(site):
    return Clock(site)


@each
def test_a_skew_that_shows_is_proved_and_so_is_its_end(clocks, site, fault):
    took_hold = clocks.inject(fault)
    healed = clocks.heal(fault)
    assert took_hold.proved, took_hold
    assert healed.proved, healed
    assert not any(site.nodes[node].clocks.set_ for node in fault.targets)


@each
def test_a_skew_that_does_not_show_is_not_proved(clocks, site, fault):
    site.deaf.add("clock")
    assert not clocks.inject(fault).proved


@each
def test_a_skew_of_all_but_one_of_its_targets_is_not_proved(clocks, site, fault, monkeypatch):
    last = site.nodes[fault.targets[-1]]
    monkeypatch.setattr(last.clocks, "look", lambda clock: (-1e-5, 1e-5))
    assert not clocks.inject(fault).proved


@pytest.fixture
def idle(site, monkeypatch):
    """Simulate time on an idle machine: reading a clock takes 10 µs, and a sleep its exact time."""
    now_s = [100.37]

    def monotonic():
        now_s[0] += 1e-5
        return now_s[0]

    def sleep(seconds):
        now_s[0] += seconds

    made = SimpleNamespace(monotonic=monotonic, time=lambda: 1.7e9 + monotonic(), sleep=sleep)
    for module in (skewed, sys.modules[type(site.nodes["etcd-1"].clocks).__module__]):
        monkeypatch.setattr(module, "time", made)


@pytest.mark.usefixtures("idle")
@pytest.mark.parametrize("offset_s", [3.0, 0.3])
def test_a_clock_that_shows_whole_seconds_is_read_until_its_bounds_suffice(
    clocks, site, monkeypatch, offset_s
):
    monkeypatch.setattr(skewed, "_PATIENCE_S", 1.5)
    site.nodes["etcd-1"].clocks.grain_s = 1.0
    receipt = clocks.inject(fault("etcd-1", offset_s=offset_s))
    low_s, high_s = receipt.data["offset_bounds_s"]["etcd-1"]["wall"]
    assert receipt.proved
    assert low_s - 0.001 <= offset_s <= high_s + 0.001
    assert high_s - low_s <= offset_s / 4


def test_a_jump_below_the_server_s_clock_resolution_is_not_proved(clocks, site):
    site.nodes["etcd-1"].clocks.grain_s = 1000.0
    assert not clocks.inject(fault("etcd-1", offset_s=3.0)).proved


class Slow:
    """A clock that shows whole seconds, on a machine where reading it takes long."""

    def __init__(self, monkeypatch, offset_s, look_s):
        self.now_s, self.offset_s, self.look_s, self.lost = 100.5, offset_s, look_s, 0
        clock = SimpleNamespace(monotonic=lambda: self.now_s, sleep=self.sleep)
        monkeypatch.setattr(skewed, "time", clock)
        monkeypatch.setattr(skewed, "_PATIENCE_S", 1.5)

    def sleep(self, seconds):
        self.now_s += seconds

    def __call__(self):
        at_s = self.now_s
        self.now_s += self.look_s
        if self.lost:
            self.lost -= 1
            raise RuntimeError("no answer in time")
        low_s = math.floor(at_s + self.offset_s) - at_s
        return skewed.Bounds(at_s, self.now_s, low_s, low_s + 1)


@pytest.mark.parametrize(("offset_s", "right"), [(2.0, True), (0.0, False)])
def test_a_clock_is_read_for_longer_where_a_reading_takes_long(monkeypatch, offset_s, right):
    slow = Slow(monkeypatch, offset_s, look_s=0.9)
    assert skewed.stands(slow, 2.0, 2.0).right is right


def test_a_reading_that_was_not_answered_is_retried(monkeypatch):
    slow = Slow(monkeypatch, 2.0, look_s=0.3)
    slow.lost = 2
    assert skewed.stands(slow, 2.0, 2.0).right


def test_reading_a_clock_that_never_answers_times_out(monkeypatch):
    slow = Slow(monkeypatch, 2.0, look_s=0.3)
    slow.lost = 10**9
    with pytest.raises(RuntimeError, match="no answer in time"):
        skewed.stands(slow, 2.0, 2.0)
    assert slow.now_s < 103


def test_reading_a_clock_whose_bounds_stay_wide_times_out(monkeypatch):
    slow = Slow(monkeypatch, 2.0, look_s=1.0)
    assert skewed.stands(slow, 2.0, 2.0).right is False
    assert slow.now_s < 120


class Drifting:
    """A clock at a rate of its own, read at an unknown moment within each look."""

    def __init__(self, monkeypatch, rate, random, look_s):
        self.now_s, self.rate, self.random, self.look_s = 100.0, rate, random, look_s
        clock = SimpleNamespace(monotonic=lambda: self.now_s, sleep=self.sleep)
        monkeypatch.setattr(skewed, "time", clock)

    def sleep(self, seconds):
        self.now_s += seconds

    def __call__(self):
        began_s = self.now_s
        read_s = began_s + self.random.uniform(0, self.look_s)
        self.now_s += self.look_s
        offset_s = (self.rate - 1) * read_s
        early_s, late_s = (self.random.uniform(0, 0.01) for _ in range(2))
        return skewed.Bounds(began_s, self.now_s, offset_s - early_s, offset_s + late_s)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("rate", [0.0, 0.5, 0.9, 1.1, 1.5, 2.0])
@pytest.mark.parametrize("look_s", [0.002, 0.1, 1.0])
def test_a_drift_is_proved_at_any_moment_of_reading_within_a_look(monkeypatch, rate, look_s, seed):
    looks = Drifting(monkeypatch, rate, Random(seed), look_s)
    # A tenth off cannot be distinguished where looks take a second: then nothing is proved.
    assert skewed.drifts(looks, rate).right or (look_s == 1.0 and abs(rate - 1) < 0.2)
    wrong = 1 + (rate - 1) * Random(seed).choice((-1, 0, 0.25, 3))
    assert skewed.drifts(looks, wrong).right is False


def test_a_clock_that_only_the_leader_shows_is_proved_by_the_leader(clocks, site):
    jump = fault("etcd-1", "etcd-2", offset_s=5.0, clocks=BOTH)
    site.nodes["etcd-2"].clocks.hidden = {"monotonic"}
    assert clocks.inject(jump).proved
    site.nodes["etcd-1"].clocks.hidden = {"monotonic"}
    receipt = clocks.heal(jump)
    assert not receipt.proved
    assert "etcd-1, monotonic: not shown: it is no leader" in receipt.how


def test_a_monotonic_clock_stays_ahead_when_the_fault_ends_and_the_next_adds_to_it(clocks, site):
    jump = fault("etcd-1", offset_s=5.0, clocks=BOTH)
    clocks.inject(jump)
    healed = clocks.heal(jump)
    assert healed.proved
    assert "etcd-1, monotonic: +5.000 s (±0.000), and stays ahead by that" in healed.how

    assert clocks.inject(jump).proved
    assert site.nodes["etcd-1"].clocks.offset_s("monotonic") == pytest.approx(10)
    assert site.nodes["etcd-1"].clocks.offset_s("wall") == pytest.approx(5)


def test_a_server_that_does_not_answer_is_set_right_all_the_same(clocks, site):
    jump = fault("zookeeper-1", offset_s=5.0)
    clocks.inject(jump)

    def silent(clock):
        raise RuntimeError("no answer")

    site.nodes["zookeeper-1"].mark_clock = silent
    with pytest.raises(RuntimeError, match="no answer"):
        clocks.heal(jump)
    assert site.nodes["zookeeper-1"].clocks.set_ == {}


def test_a_wall_clock_jumps_by_libfaketime_where_the_server_reads_its_file(clocks, site):
    clocks.inject(fault("redis-1", offset_s=5.0))
    clocks.inject(fault("etcd-1", offset_s=5.0))
    assert site.nodes["redis-1"].clocks.file_s == 5
    assert site.nodes["redis-1"].clocks.set_ == {}
    assert site.nodes["etcd-1"].clocks.file_s == 0


@pytest.mark.parametrize(
    ("node", "shown", "arguments", "why"),
    [
        ("redis-1", ["wall"], {"offset_s": 1, "clocks": BOTH}, "redis-1 does not show its mono"),
        ("client-1", ["wall"], {"offset_s": 1, "clocks": BOTH}, "times the history"),
        ("redis-1", ["wall"], {}, "it needs offset_s"),
        ("redis-1", ["wall"], {"kind": "drift", "offset_s": 1, "rate": 2}, "takes no offset_s"),
        ("redis-1", ["wall"], {"kind": "drift"}, "it needs rate"),
        ("redis-1", ["wall"], {"kind": "drift", "rate": -1}, "rate must be from 0"),
        ("redis-1", ["wall"], {"kind": "strobe", "offset_s": 1}, "it needs period_s"),
        ("redis-1", ["wall"], {"kind": "swing"}, "no such kind"),
        ("redis-1", ["wall"], {"offset_s": 1, "clocks": ["cpu"]}, "choose from wall"),
    ],
)
def test_a_fault_that_can_not_be_had_is_refused_with_the_reason(node, shown, arguments, why):
    with pytest.raises(ValueError, match=why):
        must_show(arguments, node, shown, client=node.startswith("client"))


@pytest.mark.parametrize("arguments", [{"offset_s": 1}, {"kind": "reset"}])
def test_a_fault_of_a_clock_that_shows_is_not_refused(arguments):
    must_show(arguments, "redis-1", ["wall"], client=False)


def test_a_refused_fault_leaves_every_clock_alone(clocks, site):
    receipt = clocks.inject(fault("zookeeper-1", "client-1", offset_s=1.0, clocks=BOTH))
    assert not receipt.proved
    assert "times the history" in receipt.how
    assert all(node.clocks.set_ == {} for node in site.nodes.values())


@pytest.mark.parametrize("kind", ["redis", "etcd", "zookeeper"])
def test_drawn_clock_faults_are_valid_for_each_kind_of_server(kind):
    servers = [f"{kind}-{n}" for n in (1, 2, 3)]
    shown = ("wall",) if kind == "redis" else ("wall", "monotonic")
    kinds, backwards = set(), False
    layout = Layout(servers, ["client-1"], 2.0, 0.0, kind=KINDS[kind])
    for seed in range(200):
        (drawn,) = draw(Random(seed), layout, Asked("clock"))
        targets, arguments = drawn.targets, drawn.arguments
        for node in targets:
            must_show(arguments, node, shown, client=False)
        skew = Skew.of(arguments)
        assert skew.clocks == ("wall",)
        kinds.add(skew.kind)
        backwards |= skew.offset_s < 0
    assert backwards
    assert kinds == ({"jump"} if kind == "etcd" else {"jump", "drift", "strobe"})


@pytest.mark.parametrize(("target", "expected"), [("client", 0.5), ("", 2 / 3)])
def test_clients_jump_ahead_as_often_as_back_and_servers_twice_as_often(target, expected):
    layout = Layout(["redis-1"], ["client-1", "client-2"], 2.0, 0.0, kind=KINDS["redis"])
    asked = Asked("clock", target, "jump")
    jumps = [draw(Random(seed), layout, asked)[0].arguments["offset_s"] for seed in range(500)]
    assert sum(jump > 0 for jump in jumps) / len(jumps) == pytest.approx(expected, abs=0.07)


@pytest.mark.parametrize("kind", ["etcd", "zookeeper"])
def test_a_monotonic_clock_is_moved_ahead_where_that_is_asked_for(kind):
    servers = [f"{kind}-{n}" for n in (1, 2, 3)]
    layout = Layout(servers, ["client-1"], 2.0, 0.0, kind=KINDS[kind])
    for seed in range(50):
        (drawn,) = draw(Random(seed), layout, Asked("clock", variant="monotonic"))
        skew = Skew.of(drawn.arguments)
        assert (skew.kind, skew.clocks) == ("jump", ("wall", "monotonic"))
        assert skew.offset_s > 0
        if kind == "etcd":
            assert drawn.targets == servers
