"""The program of a client that elects a leader: it works, steps down, and is replaced as a
process."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fencepost.checker.history.history import History, Op
from fencepost.checker.jobs import jobs
from fencepost.checker.leadership import leadership
from tests.workloads.electors.redis_process import redis_server

pytestmark = pytest.mark.slow

pytest.importorskip("redis")
HERE = Path(__file__).parent
ROOT = Path(__file__).parents[3]
S = 10**9
LONG_S = 240


@pytest.fixture(scope="module")
def port(tmp_path_factory):
    with redis_server(tmp_path_factory.mktemp("redis")) as (port, _):
        yield port


@pytest.fixture
def client(port, tmp_path):
    """Start the program of a client with this elector; end it afterwards."""
    started = []

    def start(elector, number=0, **more):
        one = Client(port, elector, number, tmp_path, **more)
        started.append(one)
        return one

    yield start
    for one in started:
        one.program.kill()
        one.program.wait()


class Client:
    """A client's program, and its events so far."""

    def __init__(self, port, elector, number, folder, stops="exit"):
        self.port, self.path = port, folder / f"client-{number}.out"
        self.file = self.path.open("wb")
        self.origin_ns = time.monotonic_ns()
        self.program = subprocess.Popen(
            [sys.executable, "-m", "fencepost.workloads.client.program"],
            stdin=subprocess.PIPE, stdout=self.file, env=os.environ | {"PYTHONPATH": f"{ROOT}/src"},
        )  # fmt: skip
        address = ("127.0.0.1", port)
        self.send(
            process=number, stride=2, node=f"client-{number}", lock="x", options={},
            servers=["redis-1"], addresses={"redis-1": address, "storage": address},
            storage="storage", guard="none", seed="1", origin_ns=self.origin_ns, stops=stops,
            own={"folder": str(HERE), "lock": f"redis_electors.py:{elector}"},
        )  # fmt: skip
        self.until(lambda: self.answers("ready"))

    def send(self, **line):
        self.program.stdin.write(json.dumps(line).encode() + b"\n")
        self.program.stdin.flush()

    def work(self, reign_ms=(300, 300), ttl_ns=S, until_ns=LONG_S * S):
        settings = {"ttl_ns": ttl_ns, "hold_ms": reign_ms}
        self.send(control="work", settings=settings, until_ns=until_ns)

    def lines(self):
        return [json.loads(line) for line in self.path.read_bytes().split(b"\n")[:-1]]

    def answers(self, control):
        return [line for line in self.lines() if line.get("control") == control]

    def events(self, f, *types):
        return [e for e in self.lines() if e.get("f") == f and e["type"] in (types or ("ok",))]

    def until(self, condition):
        end = time.monotonic() + LONG_S
        while not condition():
            assert time.monotonic() < end, self.lines()
            time.sleep(0.01)

    def rest(self):
        self.send(control="rest")
        self.until(lambda: self.answers("idle"))


def test_a_leader_works_until_it_resigns_and_leads_again_in_the_same_process(client):
    one = client("Sound")
    one.work()
    one.until(lambda: len(one.events("release")) == 2)
    one.rest()
    assert {event["process"] for event in one.events("write")} == {0}
    assert len(one.events("write")) >= 4


def test_a_leader_that_cannot_resign_is_replaced_by_another_process_with_the_same_pid(client):
    one = client("NoResign")
    one.work()
    one.until(lambda: {event["process"] for event in one.events("write")} >= {0, 2})
    first = next(event for event in one.lines() if event.get("process") == 2)
    closed = [event for event in one.events("close", "invoke", "ok") if event["process"] == 0]
    assert [event["type"] for event in closed] == ["invoke", "ok"]
    assert closed[1]["time"] <= first["time"]
    assert one.program.poll() is None
    one.rest()
    assert len(one.answers("ready")) == 1, "it is the same worker"


def test_the_end_of_a_process_ends_the_threads_of_its_elector(client, port):
    one, two = client("NoResign"), client("Sound", 1)
    one.work(reign_ms=(200, 200))
    one.until(lambda: one.events("close"))
    one.rest()
    two.work()
    # A thread of the first one would renew its lease for ever.
    two.until(lambda: two.events("write"))


def cut(port):
    """End all connections of clients, and the lease."""
    with socket.create_connection(("127.0.0.1", port)) as server:
        server.sendall(b"DEL orders\r\n")
        server.recv(100)


def test_a_leader_that_has_lost_its_lease_stops_unless_it_goes_on(client, port):
    sound = client("Sound")
    sound.work(reign_ms=(20_000, 20_000))
    sound.until(lambda: sound.events("write"))
    cut(port)
    sound.until(lambda: sound.events("close"))
    sound.rest()
    one, two = client("GoesOn"), client("Sound", 1)
    one.work(reign_ms=(50_000, 50_000))
    one.until(lambda: one.events("write"))
    cut(port)
    two.work(reign_ms=(50_000, 50_000))
    two.until(lambda: two.events("acquire"))
    until = two.events("acquire")[0]["time"]
    one.until(lambda: one.events("write")[-1]["time"] > until + S)


@pytest.mark.parametrize(("stops", "goes_on"), [("exit", False), ("callback", True)])
def test_an_exception_of_run_ends_the_work_unless_it_waits_for_the_callback(
    client, port, stops, goes_on
):
    one = client("Raises", stops=stops)
    one.work(reign_ms=(2500, 2500))
    one.until(lambda: one.events("write"))
    cut(port)
    one.until(lambda: one.events("close") or one.events("release", "fail"))
    assert bool(one.events("release", "fail")) == goes_on


@pytest.mark.slow
@pytest.mark.parametrize(
    ("elector", "found"),
    [
        ("GoesOn", {False}), ("Sound", {True}), ("NoResign", {True}), ("Async", {True}),
        ("SendsTwice", {False}), ("Schedules", {True}),
    ],
)  # fmt: skip
def test_the_server_is_paused_past_leases_and_only_the_leader_that_goes_on_is_accused(
    client, tmp_path, elector, found
):
    test = {"ttl_ms": 600, "lock": {"name": "x", "elector": True}}
    with redis_server(tmp_path) as (port, pid):
        both = [Client(port, elector, number, tmp_path) for number in range(2)]
        try:
            for one in both:
                one.work(reign_ms=(6000, 9000), ttl_ns=600_000_000)
            for _ in range(3):
                before = [len(one.events("acquire")) for one in both]
                one = both[0]
                one.until(lambda: any(one.events("acquire") for one in both))
                os.kill(pid, signal.SIGSTOP)
                time.sleep(1.2)  # the fault: longer than two leases
                os.kill(pid, signal.SIGCONT)
                one.until(lambda then=before: [len(o.events("acquire")) for o in both] != then)
            if elector == "SendsTwice":
                both[0].until(lambda: jobs(history_of(both), test).valid is False)
            both[0].until(lambda: len(workers(both)) > 1)
            for one in both:
                one.rest()
        finally:
            for one in both:
                one.program.kill()
                one.program.wait()
    verdict = leadership(history_of(both), test)
    assert {verdict.valid} == found, (verdict.summary, verdict.evidence)
    assert verdict.details["reigns"] > 2
    if elector in ("SendsTwice", "Schedules"):
        verdict = jobs(history_of(both), test)
        assert {verdict.valid} == found, (verdict.summary, verdict.evidence)
        assert verdict.details["jobs"] > 1


def workers(clients):
    """Return the reigns that have written."""
    return {event["value"]["hold"] for one in clients for event in one.events("write")}


def history_of(clients):
    """Merge the events of clients whose stamps have one zero."""
    rows = [
        row | {"time": row["time"] + one.origin_ns - clients[0].origin_ns}
        for one in clients
        for row in one.lines()
        if "f" in row
    ]
    rows.sort(key=lambda row: row["time"])
    for row in rows:
        row.pop("error", None)
    return History([Op(index=index, **row) for index, row in enumerate(rows)])


def test_a_scheduler_does_its_jobs_one_by_one_and_none_before_or_after_its_reign(client):
    one = client("Schedules")
    one.work()
    one.until(lambda: len(one.events("release")) == 3)
    one.rest()
    sent = [job for event in one.events("write") for job in event["value"]["jobs"]]
    assert len(sent) >= 3 and sent == [f"job {number + 1}" for number in range(len(sent))]
    inside = False
    for event in one.lines():
        if event.get("f") == "acquire" and event["type"] == "ok":
            inside = True
        elif event.get("f") == "release":
            inside = False
        elif event.get("f") in ("read", "write"):
            assert inside, event


def test_a_scheduler_that_works_before_it_leads_ends_the_program_with_a_sentence(client):
    one = client("WorksUnasked")
    one.work()
    one.until(lambda: one.answers("broken"))
    assert "work was called before started" in one.answers("broken")[0]["why"]


def test_an_elector_that_starts_twice_ends_the_program_with_a_sentence(client):
    one = client("StartsTwice")
    one.work()
    one.until(lambda: one.answers("broken"))
    assert "started was called twice in one run" in one.answers("broken")[0]["why"]
    assert one.program.wait(LONG_S) == 1


def test_a_successor_inherits_armed_failpoints_and_unread_orders(client):
    one = client("NoResign")
    one.work(reign_ms=(200, 200))
    one.until(lambda: one.events("write"))
    one.send(control="arm", point="never")
    one.send(control="rest")
    one.send(f="read", value={"resource": "account"})
    one.until(lambda: one.answers("idle") and one.events("read")[-1]["value"].get("hold") is None)
