"""The end of a run: it waits for every lock, reads every resource, and explains an early stop."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace

import pytest

from fencepost.harness.clients.recorder import Recorder
from fencepost.harness.execute import timed
from fencepost.harness.execute.site import RunSite
from fencepost.harness.judge import verdict
from fencepost.harness.judge.judge import judge
from fencepost.harness.spec.spec import Spec
from fencepost.workloads.locks.registry import LOCKS
from tests.harness.recording import record

SPEC = Spec("redis", "redis", LOCKS["redis"].read_options({}), locks=3, concurrency=2, time_s=9.0)
S = 10**9


def grant(process, lock):
    row = {"time": 1, "process": process, "type": "ok", "f": "acquire", "value": {"lock": lock}}
    return json.dumps(row).encode()


@pytest.fixture
def recorder(tmp_path):
    locks = [lock for lock, _ in SPEC.locked]
    recorder = Recorder(tmp_path / "history.jsonl", locks, SPEC.concurrency)
    yield recorder
    recorder.close()


@pytest.mark.parametrize(
    ("granted", "looks"),
    [(["orders-1", "orders-3", "orders-2"], 3), (["orders-1", "orders-3", "orders-3"], 10)],
)
def test_after_the_last_fault_a_run_waits_until_each_lock_was_granted_again(
    recorder, monkeypatch, granted, looks
):
    """Grant one lock for each look, on a clock that only looks advance; the time ends after ten."""
    slept = []
    coming = iter(granted)

    def sleep(seconds):
        slept.append(seconds)
        record(recorder, [grant(0, lock) for lock in [next(coming, None)] if lock])

    monkeypatch.setattr(timed, "time", SimpleNamespace(sleep=sleep, monotonic=lambda: len(slept)))
    record(recorder, [grant(0, "orders-2")])
    timed.await_grants(SPEC, recorder, 10)
    assert len(slept) == looks


@pytest.mark.parametrize(
    ("answers", "read"),
    [(9, ["account-1", "account-2", "account-3"]), (1, ["account-1", "account-2"])],
)
def test_every_resource_is_read_at_the_end_by_a_client_that_answers(answers, read):
    begun = []

    def do(f, value, timeout_s):
        begun.append((f, value["resource"]))
        return {} if len(begun) <= answers else None

    worker = SimpleNamespace(do=do)
    timed.read_all(SPEC, worker)
    assert begun == [("read", resource) for resource in read]


def remote_of(node):
    return SimpleNamespace(node=node)


def test_whether_others_were_granted_a_lock_is_asked_of_the_lock_that_a_client_had(recorder):
    cluster = SimpleNamespace(remote=remote_of, address=str, foreign={})
    site = RunSite(SPEC, cluster, recorder)
    site.client_fleet._workers = {
        node: SimpleNamespace(process=n) for n, node in enumerate(SPEC.clients)
    }
    record(recorder, [grant(0, "orders-1"), grant(0, "orders-2"), grant(1, "orders-1")])
    assert site.grants(without="client-1") == 0
    # A successor of the other client (3 = 1 + 2) counts, and the client's own grants do not.
    record(recorder, [grant(1, "orders-3"), grant(3, "orders-2")])
    assert site.grants(without="client-1") == 1
    # The dead client's successor holds nothing.
    site.client_fleet._workers["client-1"].process = 2
    assert site.grants(without="client-1") == 3


def test_servers_of_the_same_role_that_a_run_does_not_use_are_ended_before_it(recorder):
    """A sentinel of an earlier run makes a server of this run a replica."""
    nodes = ["redis-1", "redis-2", "redis-3", "etcd-1", "storage", "client-1", "client-2"]
    cluster = SimpleNamespace(remote=remote_of, address=str, foreign={}, nodes=nodes)
    site = RunSite(SPEC, cluster, recorder)
    assert site.servers == ["redis-1"]
    assert [server.node for server in site.server_fleet._bystanders()] == ["redis-2", "redis-3"]


def two_holders(tmp_path, **test):
    """Record a run of 2 s of 9 in which two hold one lock, one with an expired lease."""
    ops = []
    for process, start in ((0, 0), (1, 2)):
        value = {"lock": "orders", "ttl": S}
        done = {"token": None, "deadline": (start + 1) * S, "hold": f"{process}-1"}
        for type, time, more in (("invoke", start, {}), ("ok", start + 0.1, done)):
            row = {"time": int(time * S), "process": process, "type": type, "f": "acquire"}
            ops.append(row | {"value": value | more, "node": f"client-{process + 1}"})
    lines = [json.dumps({"index": index} | op) for index, op in enumerate(ops)]
    (tmp_path / "history.jsonl").write_text("\n".join(lines) + "\n")
    checkers = ["lease_exclusion", "mutual_exclusion"]
    described = {"name": "x", "checkers": checkers, "time_s": 9, "run": 1} | test
    (tmp_path / "test.json").write_text(json.dumps(described))
    return tmp_path


WORDS = "The run was stopped early by a violation that the final check did not confirm."


@pytest.mark.parametrize(
    ("test", "stopped_for_nothing"),
    [
        ({"until": ["mutual_exclusion"]}, False),
        ({"until": ["lease_exclusion"]}, True),
        ({"until": ["any"]}, False),
        ({"until_violation": True}, False),
        ({"until": []}, False),
        ({"until": ["lease_exclusion"], "time_s": 1}, False),
    ],
)
def test_a_run_that_ended_early_must_show_a_violation_that_was_to_stop_it(
    tmp_path, test, stopped_for_nothing
):
    outcome = judge(two_holders(tmp_path, **test))
    assert outcome.verdicts["mutual_exclusion"].valid is False
    assert outcome.verdicts["lease_exclusion"].valid is True
    assert ("run" in outcome.verdicts) is stopped_for_nothing
    if stopped_for_nothing:
        assert outcome.verdicts["run"].summary == WORDS


@pytest.mark.parametrize("file", ["rejected.jsonl", "set-aside.jsonl"])  # of today, and of 0.1.0
@pytest.mark.parametrize(("heard_until_s", "valid"), [(2.0, "unknown"), (2.1, False), (9.0, False)])
def test_a_violation_is_certain_only_up_to_the_last_event_of_every_client(
    tmp_path, heard_until_s, valid, file
):
    """The second grant arrives at 2.1 s. No event explains the line in a server's log."""
    folder = two_holders(tmp_path, checkers=["mutual_exclusion", "server-log"], servers=["redis-1"])
    (folder / "nodes/redis-1").mkdir(parents=True)
    (folder / "nodes/redis-1/server.log").write_text("panic: everything\n")
    row = {"client": "client-3", "lost": 1, "since_ns": int(heard_until_s * S), "unheard": True}
    (folder / file).write_text(json.dumps(row) + "\n")
    found = judge(folder).verdicts
    assert found["mutual_exclusion"].valid == valid
    assert ("may be missing, and could explain it" in found["mutual_exclusion"].summary) is (
        valid == "unknown"
    )
    assert found["server-log"].valid is False


def asked(process, lock):
    return grant(process, lock).replace(b'"ok"', b'"invoke"')


def described(recorder):
    """Return the folder of the recorder's run, with the description of a run in progress."""
    folder = recorder.path.parent
    test = {"name": "x", "checkers": ["lease_exclusion"], "started": "2026-01-01T00:00:00Z"}
    (folder / "test.json").write_text(json.dumps(test))
    return folder


LIVE = "The run was in progress when this was judged: later events are not covered."


def test_judging_a_run_in_progress_keeps_its_history_and_says_so(recorder):
    folder = described(recorder)
    record(recorder, [asked(0, "orders-1")])
    outcome = judge(folder)
    assert outcome.valid == "unknown"
    assert outcome.verdicts["run"].summary == LIVE
    record(recorder, [asked(1, "orders-2")])
    assert recorder.written == len(recorder.path.read_bytes().splitlines()) == 2


def test_results_found_during_a_run_are_no_note_of_the_run(recorder):
    folder = described(recorder)
    judge(folder)
    recorder.close()
    again = judge(folder)
    assert again.results["run_notes"] == ["The run was ended from outside before its time."]


def test_a_run_that_ended_while_it_was_judged_keeps_its_own_results(recorder, monkeypatch):
    folder = described(recorder)
    checking = verdict.check

    def ends_meanwhile(*asked):
        monkeypatch.undo()
        recorder.close()
        judge(folder, [])
        return checking(*asked)

    monkeypatch.setattr(verdict, "check", ends_meanwhile)
    assert judge(folder).results["run_notes"] == [LIVE]
    assert json.loads((folder / "results.json").read_text())["run_notes"] == []


def test_a_history_shorter_than_recorded_leaves_the_verdict_open(recorder):
    folder = described(recorder)
    rows = [asked(0, "orders-1"), asked(1, "orders-2"), asked(2, "orders-3")]
    record(recorder, rows)
    recorder.close()
    assert "run" not in judge(folder, [], recorder.written).verdicts
    lines = recorder.path.read_bytes().splitlines(keepends=True)
    recorder.path.write_bytes(b"".join(lines[:2]))
    outcome = judge(folder, [], recorder.written)
    words = "Its recorder wrote 3 ops, and 2 are in its history."
    assert (outcome.valid, outcome.verdicts["run"].summary) == ("unknown", words)


def test_a_leader_works_for_several_leases_unless_its_test_says_how_long():
    elector = LOCKS["kazoo-election"]
    spec = Spec("e", elector.name, elector.read_options({}), concurrency=2)
    assert timed.client_settings(spec)["hold_ms"] == (1000.0, 12_000)
    assert timed.client_settings(replace(spec, aim=True))["hold_ms"] == (8000, 24_000)
    assert timed.client_settings(replace(spec, hold="20ms"))["hold_ms"] == (20, 20)
    assert "leadership" in spec.to_json()["checkers"]
    assert "leadership" not in SPEC.to_json()["checkers"]
