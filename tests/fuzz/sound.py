"""Sound files, for the fuzzer to corrupt."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import msgspec

from fencepost.harness.campaigns import nightly, outcomes
from fencepost.harness.judge import judge
from fencepost.harness.package import PACKAGE
from fencepost.harness.servers.kinds import KINDS
from fencepost.nemesis import schedule as schedules
from fencepost.nemesis.targets import Layout
from fencepost.workloads.scenarios import file
from fencepost.workloads.scenarios.scenario import (
    Begin,
    Do,
    Finish,
    Heal,
    Inject,
    Pass,
    Reach,
    Scenario,
    Timed,
)
from tests.report import matrices
from tests.report.pages import test_sweep as sweeps

RECORDED = Path(__file__).parents[1] / "recorded"
RUN = RECORDED / "redlock-clock-jump"
RANDOM_RUN = RECORDED / "redlock-paused-and-killed-servers"
"""A run that can be repeated: its faults were drawn, and not scripted."""


def history() -> bytes:
    return gzip.decompress((RUN / "history.jsonl.gz").read_bytes())


_KNOWN: dict[str, bytes] = {}


def results() -> bytes:
    """Return the results of the run, as it is judged."""
    if not _KNOWN:
        folder = Path("judged")
        folder.mkdir()
        (folder / "history.jsonl").write_bytes(history())
        (folder / "test.json").write_bytes((RUN / "test.json").read_bytes())
        judge.judge(folder, [])
        _KNOWN["results"] = (folder / "results.json").read_bytes()
    return _KNOWN["results"]


def facts() -> bytes:
    """The part of the run's description that is learnt, as run.json has it."""
    test = json.loads((RUN / "test.json").read_bytes())
    learnt = ("versions", "ready_s", "started", "checkers", "not_checked", "schedule")
    return json.dumps({name: test[name] for name in learnt if name in test}).encode()


def simulated() -> bytes:
    """Return the run's description, as if a hunt had simulated it."""
    test = json.loads((RUN / "test.json").read_bytes())
    hunt = {"story": ["1. it breaks"], "broken": ["lease_exclusion"]}
    return json.dumps(test | {"simulated": True, "hunt": hunt}).encode()


def messages() -> bytes:
    """Return messages around the violation of the run, some of them lost or late."""
    rows = []
    for number, fate in enumerate(("", "", "late", "lost", "dead", "again", "unread", "refused")):
        at = 2_950_000_000 + number * 20_000_000
        ends = {"source": f"client-{1 + number % 2}", "to": f"redis-{1 + number % 5}"}
        about = {"words": f"SET k{number} NX", "call": number, "f": "acquire", "op_ns": at}
        rows.append(ends | about | {"sent_ns": at, "arrived_ns": at + 250_000, "fate": fate})
        back = {"source": ends["to"], "to": ends["source"], "words": "OK", "reply": True}
        rows.append(rows[-1] | back | {"sent_ns": at + 250_000, "arrived_ns": at + 500_000})
    return json.dumps({"messages": rows, "left_out": 3}).encode()


def suite() -> bytes:
    """Return a suite.json with a scenario, a rate and a cost."""
    row = {
        "test": "a", "scenario": "a", "lock": "redis", "guard": "none", "what": "w", "why": "",
        "expected": {"resource": True}, "observed": {"resource": True}, "as_expected": True,
        "run": "../../test/20260101T000000.000001Z", "claim": "c", "source": "s",
    }  # fmt: skip
    shares = {"data": {"count": 1, "of": 2, "low": 0.1, "high": 0.9}}
    rate = row | {"test": "b", "rate": {"runs": [{"run": row["run"]}], "shares": shares}}
    return json.dumps([row, rate]).encode()


def matrix() -> bytes:
    return json.dumps(matrices.stored(matrices.cell(matrices.run()))).encode()


def sweep() -> bytes:
    return json.dumps(sweeps.stored(sweeps.RUNS)).encode()


def bench() -> bytes:
    """Return a bench.json with one lock."""
    figures = {"pair_p50": 1.0, "acquire_p50": 1.0, "acquire_p99": 2.0, "rate": 100.0}
    phases = dict.fromkeys(("alone", "contended", "apart"), figures)
    lock = {"lock": "redis", "phases": phases, "trips": {"acquire": 1, "release": 1}}
    stored = {"schema": 1, "baseline": "redis", "versions": {"redis": "7"}, "locks": [lock]}
    return json.dumps(stored | {"command": "fencepost bench"}).encode()


def night() -> bytes:
    """Return a night.json with an entry of a matrix."""
    rate = {"count": 1, "of": 10, "per_1000": 100.0, "low": 0.1, "high": 0.4}
    entry = outcomes.Entry(
        "matrix/redis/none/none", "redis", marks=["kept"], holds=10, rates={"service": rate},
        acquire_ms={"p50": 1.0}, regrant_s=[1.0], duration_s=1.0, state="changed", run="a/b",
        known={"marks": ["kept"], "run": "a/b", "night": "x", "seed": 1},
    )  # fmt: skip
    night = nightly.NightlyRun(
        nightly.SCHEMA, 7, 600.0, "2026-01-01T00:00:00Z", over=True, entries=[entry],
        parts=[nightly.Stage("suites", "fencepost suite", 60.0, folders=["a/b"])],
        figures=outcomes.figures([entry]),
    )  # fmt: skip
    return msgspec.json.encode(night)


SERVERS, CLIENTS = [f"redis-{n}" for n in range(1, 6)], [f"client-{n}" for n in range(1, 4)]
LAYOUT = Layout(
    SERVERS, CLIENTS, ttl_s=2.0, restart_s=0.0, kind=KINDS["redis"], replicated=True, leads=True
)


def schedule() -> bytes:
    drawn = schedules.draw(("partition", "pause", "clock", "kill", "delay"), 3, 12, 3, LAYOUT)
    rows = [fault.to_json() for fault in drawn[:8]]
    return json.dumps([*rows, {"at_s": 1, "duration_s": 2, "fault": "partition:halves"}]).encode()


def scenario() -> bytes:
    """Return a scenario as a hunt writes it."""
    steps = (
        Timed(Begin("client-1", "acquire", None, ("step-4", "step-6-connected")), 0.0, True),
        Timed(Reach("client-1", "step-4", "until its SET to redis-2"), 0.1),
        Timed(Inject("hold-1", "pause", ("client-1",), {"point": "step-4"}), 0.1),
        Timed(Inject("jump", "clock", ("redis-1",), {"offset_s": 8.8}), 0.2),
        Timed(Do("client-2", "acquire", "ok", True), 9.0, True),
        Timed(Heal("hold-1"), 9.1),
        Timed(Finish("client-1", "info"), 9.2),
        Pass(0.5),
    )
    scenario = Scenario(
        "hunt-redlock", (), "", "", "none", steps, {"lease_exclusion": False},
        {"retries": 3, "clock_check": True}, 2, 8000, "redlock", {"persistence": "none"},
    )  # fmt: skip
    return file.to_text(scenario, ("a note",), ()).encode()


REGISTER = "".join(
    json.dumps(row) + "\n"
    for row in (
        {"process": 0, "type": "invoke", "f": "write", "value": 1, "index": 0, "time": 5},
        {"process": 1, "type": "invoke", "f": "read", "value": None, "index": 1, "time": 6},
        {"process": 0, "type": "ok", "f": "write", "value": 1, "index": 2, "time": 7},
        {"process": 1, "type": "ok", "f": "read", "value": 1, "index": 3, "time": 8},
        {"process": 2, "type": "invoke", "f": "cas", "value": [1, 2], "index": 4, "time": 9},
        {"process": 2, "type": "info", "f": "cas", "value": [1, 2], "index": 5, "time": 10},
    )
)
MUTEX = "".join(
    json.dumps(row | {"time": 1000 * time}) + "\n"
    for time, row in enumerate((
        {"process": 0, "type": "invoke", "f": "acquire", "value": {"lock": "a", "ttl": 9}},
        {"process": 0, "type": "ok", "f": "acquire", "value": {"lock": "a", "deadline": 9}},
        {"process": 1, "type": "invoke", "f": "acquire", "value": {"lock": "a", "ttl": 9}},
        {"process": 0, "type": "invoke", "f": "release", "value": {"lock": "a"}},
        {"process": 0, "type": "ok", "f": "release", "value": {"lock": "a"}},
        {"process": 1, "type": "fail", "f": "acquire", "value": {"lock": "a"}},
    ))
)  # fmt: skip
EDN = b"""; a register
[{:process 0, :type :invoke, :f :write, :value 1, :index 0, :time 12}
 #jepsen.history.Op{:process 1, :type :invoke, :f :cas, :value [1 2], :index 1}
 {:process 0, :type :ok, :f :write, :value 1N, "s" #{1 2} \\a nil} #_ {:x 2/3}
 {:process 1, :type :info, :f :cas, :value [1 2], :error :timeout}
 {:process 2, :type :invoke, :f :read, :value nil} {:process 2, :type :ok, :f :read, :value 1e0}]
"""
KV = b"""{:process 0, :type :invoke, :f :put, :key "0", :value "x"}
{:process 1, :type :invoke, :f :get, :key "0", :value nil}
{:process 0, :type :ok, :f :put, :key "0", :value "x"}
{:process 1, :type :ok, :f :get, :key "0", :value "x"}
"""
ETCD = b"""INFO  jepsen.util - 0\t:invoke\t:write\t2
INFO  jepsen.util - 1\t:invoke\t:read\tnil
INFO  jepsen.util - 0\t:ok\t:write\t2
INFO  jepsen.util - 1\t:ok\t:read\t2
INFO  jepsen.util - 2\t:invoke\t:cas\t[2 3]
INFO  jepsen.util - 2\t:info\t:cas\t:timed-out
"""
HOSTS = b"""[defaults]
key = "file"
known_hosts = "file"
user = "root"

[nodes.redis-1]
host = "127.0.0.1"
port = 22

[nodes.client-1]
host = "127.0.0.2"
address = "127.0.0.3"
user = "me"
sudo = true
"""


TOML = b"""lock = "redis"
time = "10s"
faults = ["kill", "pause"]
"""
LOCK = (PACKAGE / "harness" / "userlock" / "templates" / "mylock.py.in").read_bytes()
