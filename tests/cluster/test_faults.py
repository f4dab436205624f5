"""Each fault takes effect on real nodes and is proved, and a broken injection is never proved."""

from __future__ import annotations

import signal
import threading
import time

import pytest

from fencepost.nemesis import chains, clock, iptables, packet
from fencepost.nemesis.nemesis import Fault
from fencepost.nemesis.schedule import Scheduled
from tests.cluster.conftest import Bench

CUT = Fault(
    "cut",
    "partition",
    ["client-1", "redis-1"],
    {"links": [["client-1", "redis-1"], ["redis-2", "redis-3"]]},
)
PAUSE = Fault("pause", "pause", ["redis-2"])
STOP = Fault("stop", "pause", ["client-2"])
JUMP = Fault("jump", "clock", ["redis-3"], {"offset_s": -7200.0})
DRIFT = Fault("drift", "clock", ["redis-3", "redis-5"], {"kind": "drift", "rate": 0.8})
STROBE = Fault(
    "strobe", "clock", ["redis-3"], {"kind": "strobe", "offset_s": 30.0, "period_s": 0.02}
)
SKEW = Fault("skew", "clock", ["client-1", "client-2"], {"offset_s": -3600.0})
CRASH = Fault("crash", "kill", ["redis-4"])
DEATH = Fault("death", "kill", ["client-3"])
DELAY = Fault("delay", "delay", ["client-1", "storage"], {"source": "client-1", "to": "storage"})

REJECT = Fault("reject", "partition", CUT.targets, CUT.arguments | {"how": "reject"})
ONE_WAY = {"links": [["client-1", "redis-1"], ["client-1", "storage"]]}
REQUESTS = Fault("requests", "partition", ["client-1"], ONE_WAY | {"lost": "requests"})
REPLIES = Fault("replies", "partition", ["client-1"], ONE_WAY | {"lost": "replies"})
PAUSES = Fault("pauses", "pause", ["redis-1", "redis-2", "redis-3"])
WIPED = Fault("wiped", "kill", ["redis-1", "redis-2"], {"data": "wiped"})
LOSSY = Fault("lossy", "packet", ["redis-1"], {"kind": "loss"})
LATE = Fault("late", "packet", ["redis-1"], {"kind": "delay"})


@pytest.fixture
def bench(cluster, tmp_path):
    found = Bench(cluster, tmp_path, "redlock", nemesis=("clock",), concurrency=3)
    yield found
    found.close()


@pytest.mark.parametrize(
    "fault",
    [CUT, PAUSE, STOP, JUMP, DRIFT, STROBE, SKEW, CRASH, DEATH, REJECT, REQUESTS, REPLIES, PAUSES,
     WIPED],
    ids=lambda f: f.name,
)  # fmt: skip
def test_injection_and_heal_of_each_fault_have_a_receipt(bench, fault):
    took_hold = bench.director.inject(fault)
    healed = bench.director.heal(fault.name)

    assert took_hold.proved, took_hold
    assert healed.proved, healed
    assert bench.judge().valid is True


def test_a_client_s_skewed_wall_clock_outlives_its_process_and_leaves_the_history_alone(bench):
    assert bench.director.inject(SKEW).proved
    assert bench.director.inject(Fault("death", "kill", ["client-1"])).proved
    assert bench.director.heal("death").proved
    successor = bench.site.client("client-1")
    low_s, high_s = successor.look_at_clock("wall", {})
    assert low_s <= -3600 <= high_s

    began = bench.recorder.now()
    successor.begin("acquire", {"lock": "l", "ttl": 2_000_000_000})
    assert began < successor.finish(120)["time"] < bench.recorder.now()
    assert bench.director.heal("skew").proved


def test_of_one_way_the_request_arrives_and_its_answer_does_not(bench):
    """The server has executed the request, and the client does not know."""
    worker, remote = bench.site.client("client-1"), bench.site.remote("redis-1")
    for f, value in (
        ("acquire", {"lock": "k", "ttl": 10_000_000_000}),
        ("release", {"lock": "k", "hold": "0-1"}),
    ):
        # On an open connection: a new one needs an answer to open.
        worker.begin(f, value)
        assert worker.finish(120)["type"] == "ok"
    assert bench.director.inject(REPLIES).proved
    before = remote.run(["redis-cli", "dbsize"]).out
    worker.begin("acquire", {"lock": "l", "ttl": 10_000_000_000})
    assert worker.finish(120)["type"] == "ok"  # of the four others
    end = time.monotonic() + 240
    while remote.run(["redis-cli", "dbsize"]).out == before and time.monotonic() < end:
        time.sleep(0.02)
    assert remote.run(["redis-cli", "dbsize"]).out != before
    assert bench.director.heal("replies").proved


def test_rejection_ends_a_connection_that_is_open_at_once(bench):
    worker = bench.site.client("client-1")
    worker.begin("acquire", {"lock": "l", "ttl": 2_000_000_000})
    assert worker.finish(120)["type"] == "ok"
    links = [["client-1", node] for node in bench.site.servers]
    cut = {"links": links, "how": "reject"}

    assert bench.director.inject(Fault("all", "partition", ["client-1"], cut)).proved
    worker.begin("release", {"lock": "l", "hold": "0-1"})
    assert worker.finish(120)["type"] == "info"


def test_without_sch_netem_packets_are_not_supported_and_the_run_is_unknown(bench):
    remote = bench.site.remote("redis-1")
    lacks = packet.lacks(remote)
    assert "netem" not in packet.queues(remote, "lo")
    receipt = bench.director.inject(LATE)
    assert ("delay" in lacks) is not receipt.proved
    healed = bench.director.heal("late")
    assert healed.proved
    if receipt.proved:  # a kernel that has it
        assert "netem" in receipt.data["queue"]
    else:
        assert receipt.how == "not supported here: no sch_netem"
        assert bench.judge().valid == "unknown"


def test_packets_are_lost_with_netem_or_without(bench):
    receipt = bench.director.inject(LOSSY)
    assert receipt.proved, receipt
    if "netem" not in receipt.data.get("queue", ""):
        lost = iptables.Rule("IN", bench.site.address("redis-1"), share=0.3)
        end = time.monotonic() + 240
        worker = bench.site.client("client-1")
        while not iptables.hits(bench.site.remote("client-1"))[lost] and time.monotonic() < end:
            worker.begin("acquire", {"lock": "l", "ttl": 100_000_000})
            assert worker.finish(120)["type"] in ("ok", "fail")
    healed = bench.director.heal("lossy")
    assert healed.proved, healed


@pytest.fixture
def counting(cluster, tmp_path):
    """A bench whose clients count their lock's requests."""
    found = Bench(cluster, tmp_path, "redis", nemesis=("pause", "kill"), aim=True, concurrency=2)
    yield found
    found.close()


def released_at(bench, fault):
    """Inject a fault at client-1's next release; return its receipt."""
    worker = bench.site.client("client-1")
    worker.begin("acquire", {"lock": "l", "ttl": 60_000_000_000})
    assert worker.finish(120)["type"] == "ok"
    made = []
    thread = threading.Thread(target=lambda: made.append(bench.director.inject(fault)))
    thread.start()
    worker.arm("before-release")  # the nemesis may be later than the release
    worker.begin("release", {"lock": "l", "hold": "0-1"})
    thread.join(60)
    return made[0]


def test_a_client_is_killed_before_the_request_of_its_release(counting):
    killed = released_at(counting, Fault("k", "kill", ["client-1"], {"point": "before-release"}))
    assert killed.proved and killed.data["at"] == "at before-release", killed
    assert counting.run("redis-1", "redis-cli", "dbsize") == "1"
    assert counting.director.heal("k").proved


def test_a_fault_meets_the_request_of_a_release(counting):
    links = {"links": [["client-1", "redis-1"]], "lost": "requests"}
    meets = links | {"point": "before-release", "client": "client-1"}
    cut = released_at(counting, Fault("cut", "partition", ["client-1", "redis-1"], meets))
    assert cut.proved and cut.data["at"] == "at before-release", cut
    worker = counting.site.client("client-1")
    assert worker.finish(120)["type"] == "info"
    assert counting.director.heal("cut").proved


def test_a_pause_ends_when_another_client_was_granted_the_lock(bench):
    one, two = bench.site.client("client-1"), bench.site.client("client-2")
    one.begin("acquire", {"lock": "l", "ttl": 300_000_000})
    assert one.finish(120)["type"] == "ok"
    pause = Scheduled(0.0, 600.0, "pause", ["client-1"], {"point": None, "until": "other-holds"})
    began = time.monotonic()
    stopped = threading.Thread(target=bench.director.run, args=([pause], lambda: False))
    stopped.start()
    while not bench.director.on:
        time.sleep(0.01)
    granted, end = 0, time.monotonic() + 240
    # The first grant may come before the pause waits for one.
    while stopped.is_alive():
        assert time.monotonic() < end
        two.begin("acquire", {"lock": "l", "ttl": 300_000_000})
        granted += two.finish(120)["type"] == "ok"
    assert granted
    assert time.monotonic() - began < 500
    assert bench.site.remote("client-1").state(one.pid) != "T"


def test_held_packets_arrive_when_the_delay_ends(bench):
    worker = bench.site.client("client-1")
    worker.begin("read", {"resource": "account"})
    assert worker.finish(120)["type"] == "ok"

    assert bench.director.inject(DELAY).proved
    worker.begin("read", {"resource": "account"})
    assert worker.finish(0.5) is None
    healed = bench.director.heal("delay")

    assert healed.proved and healed.data["held"] > 0
    assert worker.finish(120)["type"] == "ok"


def test_a_cut_reaches_connections_that_are_open_already(bench):
    worker = bench.site.client("client-1")
    worker.begin("acquire", {"lock": "l", "ttl": 2_000_000_000})
    assert worker.finish(120)["type"] == "ok"
    links = [["client-1", node] for node in bench.site.servers]

    bench.director.inject(Fault("all", "partition", ["client-1"], {"links": links}))
    worker.begin("release", {"lock": "l", "hold": "0-1"})

    assert worker.finish(120)["type"] == "info"


def wrong_rule(bench, monkeypatch):
    # The rule is about an unused address (RFC 5737).
    good = bench.site.address
    monkeypatch.setattr(bench.site, "address", lambda node: "192.0.2.1")
    real = chains.probe

    def probe(site, source, targets):
        monkeypatch.setattr(bench.site, "address", good)
        return real(site, source, targets)

    monkeypatch.setattr("fencepost.nemesis.partition.probe", probe)


def wrong_pid(bench, monkeypatch):
    monkeypatch.setattr(bench.site.server("redis-2"), "pause", lambda: 1)
    monkeypatch.setattr(bench.site.server("redis-4"), "kill", lambda: 1)


def no_hook(bench, monkeypatch):
    """The rules are in chains that no packet passes."""
    monkeypatch.setattr(
        iptables,
        "hook",
        lambda remote: [
            remote.run(["iptables", "-w", "-N", chain]) for chain in iptables.CHAINS.values()
        ],
    )


def unread_clock(bench, monkeypatch):
    monkeypatch.setattr(clock, "CLOCK_FILE", "/run/fencepost/nobody-reads-this")


@pytest.mark.parametrize(
    ("fault", "sabotage"),
    [(CUT, wrong_rule), (PAUSE, wrong_pid), (CRASH, wrong_pid), (JUMP, unread_clock),
     (CUT, no_hook), (REJECT, no_hook), (REQUESTS, no_hook), (DELAY, no_hook)],
    ids=["rule for another address", "pause of another pid", "kill of another pid",
         "clock file that nobody reads", "cut in no chain", "rejection in no chain",
         "one way in no chain", "delay in no chain"],
)  # fmt: skip
def test_a_fault_without_effect_makes_the_run_unknown(bench, monkeypatch, fault, sabotage):
    sabotage(bench, monkeypatch)

    receipt = bench.director.inject(fault)
    bench.director.heal(fault.name)

    assert not receipt.proved
    assert bench.judge().valid == "unknown"


@pytest.mark.parametrize("point", ["acquired", "before-write", "replies-in-flight"])
def test_a_client_is_stopped_at_its_named_point_every_time(bench, point):
    worker = bench.site.client("client-1")
    remote = bench.site.remote("client-1")
    for _ in range(10):
        ops = [("acquire", {"lock": "l", "ttl": 2_000_000_000})]
        if point == "before-write":
            worker.begin(*ops[0])
            hold = worker.finish(120)["value"]["hold"]
            ops = [("write", {"resource": "account", "version": 0, "hold": hold})]
        worker.arm(point)
        worker.begin(*ops[0])
        assert worker.wait_failpoint(point, 20)
        end = time.monotonic() + 240
        while remote.state(worker.pid) != "T" and time.monotonic() < end:
            time.sleep(0.005)
        assert remote.state(worker.pid) == "T"
        remote.signal(worker.pid, signal.SIGCONT)
        done = worker.finish(120)
        hold = done["value"]["hold"]
        worker.begin("release", {"lock": "l", "hold": hold})
        assert worker.finish(120)["type"] == "ok"


def test_healing_leaves_the_rules_of_others_where_they_are(bench):
    remote = bench.site.remote("redis-1")
    theirs = ["INPUT", "-s", "192.0.2.7", "-j", "DROP"]
    remote.run(["iptables", "-w", "-A", *theirs])
    try:
        bench.director.inject(CUT)
        bench.director.heal("cut")
        iptables.clear(remote)

        assert remote.run(["iptables", "-w", "-C", *theirs]).code == 0
        assert "FENCEPOST" not in remote.run(["iptables", "-w", "-S"]).out
    finally:
        remote.run(["iptables", "-w", "-D", *theirs])
