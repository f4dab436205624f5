"""A triggered fault waits for its moment, heals all its faults, and records its actions."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field, replace
from itertools import islice

import pytest

from fencepost.harness.clients.current_holders import Held
from fencepost.harness.servers.kinds import KINDS
from fencepost.nemesis import aim
from fencepost.nemesis.aim import Aim
from fencepost.nemesis.nemesis import Receipt
from fencepost.nemesis.targets import Layout
from fencepost.nemesis.trigger_draws import draws
from fencepost.nemesis.triggers import HOLDER, Injection, Trigger

pytestmark = pytest.mark.slow

TTL_S = 0.2
AT = Layout(
    ["redis-1", "redis-2", "redis-3"], ["client-1", "client-2"], TTL_S, 0.0, kind=KINDS["redis"]
)
PAUSE = Injection("pause", [HOLDER], {"until": "other-holds"})
CUT = Injection("partition", ["client-1", "redis-1"], {"links": [["client-1", "redis-1"]]})


@dataclass(frozen=True)
class Lease:
    client: str
    start_ns: int
    deadline_ns: int | None
    lost: bool = False
    leased = Held.leased


@dataclass
class Run:
    """A run whose events the test controls; it replaces watch and director."""

    held: list[Lease] = field(default_factory=list)
    others: int = 0
    log: list[tuple] = field(default_factory=list)
    at_injection: object = None
    begun: float = field(default_factory=time.monotonic)
    data: dict = field(default_factory=dict)
    on: list = field(default_factory=list)

    def now(self):
        return int((time.monotonic() - self.begun) * 1e9)

    def leases(self):
        return self.held

    def grants(self, without):
        return self.others

    def inject(self, fault):
        self.log.append(("inject", fault.family, fault.targets, self.now() / 1e9))
        if self.at_injection:
            self.at_injection(fault)
        at = {HOLDER: self.held[0].client} if self.held else {}
        self.on = [replace(fault, targets=[at.get(node, node) for node in fault.targets])]
        return Receipt(True, "injected", self.data)

    def heal(self, name):
        self.log.append(("heal", name))

    def holds(self, client, since_s=0.0, left_s=TTL_S, lost=False):
        now = self.now()
        deadline = None if left_s is None else now + int(left_s * 1e9)
        self.held = [Lease(client, now - int(since_s * 1e9), deadline, lost)]


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    monkeypatch.setattr(aim, "QUIET_START_S", 0.0)


def play(kind="hold", share=0.5, before=(), strike=(PAUSE,), lasts_s=5.0, until_grant=True, **seen):
    return Trigger(kind, list(before), list(strike), share, lasts_s, until_grant, 0.0, **seen)


def carried_out(run, *given, until=lambda: False, at=AT):
    one = Aim(["pause"], 7, at, run, given)
    one.run(run, until)
    return one


def verbs(run):
    return [entry[0] for entry in run.log]


def test_an_injection_waits_until_a_fraction_of_a_lease_has_passed():
    run = Run()
    run.holds("client-2")
    run.at_injection = lambda fault: setattr(run, "others", 1)
    done = carried_out(run, play(share=0.5))
    ((_, family, targets, at_s), healed) = run.log
    assert (family, targets, healed) == ("pause", ["client-2"], ("heal", "aim-1"))
    assert at_s >= 0.5 * TTL_S
    assert (done.triggered[0].holder, done.triggered[0].at_s) == (
        "client-2",
        pytest.approx(at_s, abs=0.1),
    )


@pytest.mark.parametrize("held", [{"lost": True}, {"left_s": 0.2 * TTL_S}])
def test_a_hold_that_is_lost_or_nearly_ended_is_not_hit(monkeypatch, held):
    monkeypatch.setattr(aim, "_MOMENT_TTLS", 0.5)
    run = Run()
    run.holds("client-2", since_s=TTL_S, **held)
    done = carried_out(run, play(share=0.1))
    assert run.log == []
    assert (done.triggered[0].holder, done.triggered[0].at_s) == (None, None)


def test_at_the_edge_of_a_lease_a_holder_that_no_longer_counts_on_it_is_hit_too():
    run = Run()
    slowly = replace(AT, ttl_s=20.0)
    run.holds("client-2", left_s=1.2, lost=True)
    run.at_injection = lambda fault: setattr(run, "others", 1)
    carried_out(run, play("edge", share=0.95), at=slowly)
    ((_, _, targets, at_s), _) = run.log
    assert targets == ["client-2"] and 0.15 <= at_s <= 1.2


def test_a_renewed_lease_which_has_no_edge_is_hit_after_a_while():
    run = Run()
    run.at_injection = lambda fault: setattr(run, "others", 1)
    run.leases = lambda: [Lease("client-2", 0, run.now() + int(0.9 * TTL_S * 1e9))]
    carried_out(run, play("edge", share=0.95))
    ((_, _, targets, at_s), _) = run.log
    assert targets == ["client-2"] and at_s >= 2 * TTL_S


def test_a_hold_without_a_lease_is_hit_as_well():
    run = Run()
    run.holds("client-1", since_s=TTL_S, left_s=None)
    run.at_injection = lambda fault: setattr(run, "others", 1)
    carried_out(run, play("edge", share=0.95))
    assert run.log[0][2] == ["client-1"]


def test_preparatory_faults_are_healed_last_even_if_the_moment_never_comes(monkeypatch):
    monkeypatch.setattr(aim, "_MOMENT_TTLS", 0.2)
    run = Run()
    done = carried_out(run, play("split", before=[CUT]))
    assert verbs(run) == ["inject", "heal"]
    assert [(one.family, one.targets) for one in done.schedule] == [("partition", CUT.targets)]
    assert done.schedule[0].duration_s >= round(0.2 * TTL_S, 3)  # the history has it in ms

    run = Run()
    run.holds("client-2", since_s=TTL_S / 2)
    carried_out(run, play("split", share=0.1, before=[CUT], lasts_s=0.01))
    assert run.log[-2:] == [("heal", "aim-2"), ("heal", "aim-1")]


def test_an_injection_ends_with_another_client_s_grant_or_at_its_timeout():
    run = Run()
    run.holds("client-2", since_s=TTL_S / 2)
    begun = time.monotonic()
    carried_out(run, play(share=0.1, lasts_s=0.1))
    assert 0.1 <= time.monotonic() - begun < 120
    threading.Timer(0.1, lambda: setattr(run, "others", 1)).start()
    carried_out(run, play(share=0.0, lasts_s=300.0))
    assert time.monotonic() - begun < 240
    threading.Timer(0.1, lambda: setattr(run, "others", 2)).start()
    begun = time.monotonic()
    carried_out(run, play(share=0.0, lasts_s=0.4, until_grant=False))
    assert time.monotonic() - begun >= 0.4


def test_a_replayed_trigger_waits_for_the_same_client_first(monkeypatch):
    run = Run()
    run.held = [Lease(name, -(10**9), 10**12) for name in ("client-1", "client-2")]
    done = carried_out(run, play(share=0.1, lasts_s=0.01, holder="client-2", at_s=9.0))
    assert run.log[0][2] == ["client-2"]
    assert done.triggered[0].at_s < 9.0
    monkeypatch.setattr(aim, "_SAME_TTLS", 0.1)
    run = Run()
    run.held = [Lease("client-1", -(10**9), 10**12)]
    carried_out(run, play(share=0.1, lasts_s=0.01, holder="client-2"))
    assert run.log[0][2] == ["client-1"]


def test_of_two_holders_the_one_that_was_granted_the_lock_last_is_hit():
    run = Run()
    run.held = [Lease("client-1", -(10**9), None), Lease("client-2", -(10**8), None)]
    run.at_injection = lambda fault: setattr(run, "others", 1)
    carried_out(run, play(share=0.1))
    assert run.log[0][2] == ["client-2"]


def test_without_given_triggers_they_are_drawn_from_the_seed_until_the_run_ends():
    run = Run()
    run.held = [Lease("client-1", -(10**9), 10**12)]
    at = replace(AT, bound_s=0.0)  # else each pause outlasts it
    done = Aim(["pause"], 7, at, run)
    done.run(run, lambda: len(run.log) >= 6)
    drawn = [*islice(draws(["pause"], 7, at), len(done.triggered))]
    assert [one.strike for one in done.triggered] == [one.strike for one in drawn]
    assert verbs(run).count("inject") == verbs(run).count("heal")


def test_an_exception_of_an_injection_is_raised_after_all_is_healed():
    def broken(fault):
        raise OSError("the disk is full")

    run = Run(at_injection=broken)
    run.holds("client-2", since_s=TTL_S)
    with pytest.raises(OSError, match="the disk is full"):
        carried_out(run, play(share=0.1))
    assert verbs(run) == ["inject", "heal"]


def test_a_failpoint_that_was_missed_is_not_waited_for_again():
    run = Run()
    at = replace(AT, failpoints=("between-requests",), bound_s=0.0)
    run.holds("client-2", left_s=60.0)
    pauses = []

    def miss(fault):
        pauses.append(fault.arguments)
        run.others += 1
        run.data = {"at": "wherever it was"}
        run.holds("client-2", left_s=60.0)

    run.at_injection = miss
    one = Aim(["pause:client"], 7, at, run)
    one.run(run, until=lambda: len(pauses) > 12)
    waited = [a for a in pauses if a.get("point") == "between-requests"]
    assert len(waited) == 1
    assert any(a.get("until") == "other-holds" for a in pauses)


def test_the_first_client_at_a_failpoint_is_hit_and_a_request_is_its_holder_s():
    run = Run()
    run.holds("client-2")
    run.at_injection = lambda fault: seen.append((fault.targets, fault.arguments))
    seen = []
    at_its_point = Injection("pause", [HOLDER], {"point": "before-release"})
    meets = Injection("packet", [HOLDER], {"point": "before-release", "client": HOLDER})
    done = carried_out(run, play("point", strike=[at_its_point], lasts_s=0.01, until_grant=False))
    assert done.schedule[0].targets == ["client-2"] and done.triggered[0].holder == "client-2"
    carried_out(run, play("request", strike=[meets], lasts_s=0.01, until_grant=False))
    assert seen == [
        ([HOLDER], {"point": "before-release"}),
        ([HOLDER], {"point": "before-release", "client": HOLDER}),
    ]


def test_the_reply_to_an_acquire_is_met_when_no_client_holds_the_lock():
    run = Run()
    run.holds("client-1", left_s=60.0)
    at_reply = Injection("pause", [HOLDER], {"point": "replies-in-flight"})
    freed = []

    def free():
        freed.append(run.now() / 1e9)
        run.held = []

    timer = threading.Timer(0.1, free)
    timer.start()
    carried_out(run, play("point", strike=[at_reply], until_grant=False, lasts_s=0.01))
    timer.join()
    assert run.log[0][3] >= freed[0]
