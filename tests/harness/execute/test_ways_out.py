"""However a run ends, its history is judged, its notes give the reason, and it leaves nothing."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from fencepost.checker.history import history
from fencepost.harness.clients import streams
from fencepost.harness.errors import Crashed
from fencepost.harness.execute import timed
from fencepost.harness.execute.run import run
from fencepost.harness.judge import verdict
from fencepost.harness.remote.remote import NoAnswer, RemoteError
from fencepost.harness.results import results
from tests.harness.disturbed import (
    FAULTY,
    SPEC,
    assert_judged_and_put_away,
    carried_out,
    fresh,
    undisturbed_calls,
)
from tests.harness.memory import Call

pytestmark = pytest.mark.slow


def test_an_undisturbed_run_is_valid_and_has_its_report(cluster, monkeypatch):
    root = results.root()
    monkeypatch.undo()
    monkeypatch.setenv("FENCEPOST_RESULTS", str(root))
    monkeypatch.setattr(streams, "_END_S", 0.05)
    ended = carried_out(cluster, FAULTY)
    assert_judged_and_put_away(ended, cluster)
    assert ended.outcome is not None and ended.outcome.valid is True
    assert ended.results["run_notes"] == []
    assert [fault["family"] for fault in ended.results["faults"]] == ["pause", "pause"]
    assert ended.outcome.verdicts["faults"].valid is True
    assert "Persistence" in (ended.folder / "report.html").read_text()
    assert (ended.folder / "nodes/redis-1/server.log").read_text() == "the server's log\n"


def test_a_run_says_when_its_clients_were_ready_however_long_that_took(cluster):
    # The harness looks for a ready client among its node's processes.
    cluster.after = lambda call: time.sleep(0.2) if "fencepost-node process" in call.what else None
    ended = carried_out(cluster)
    ready_ns = results.read_test(ended.folder)["ready_s"] * 1e9
    first = min(op.time for op in history.read(ended.folder / "history.jsonl").ops)
    assert 0.2e9 * SPEC.concurrency <= ready_ns <= first


def test_a_run_says_when_it_began_by_the_wall_clock(cluster):
    before_s = time.time()
    ended = carried_out(cluster)
    end_s = history.read(ended.folder / "history.jsonl").end_ns / 1e9
    assert before_s <= results.read_test(ended.folder)["began_unix_s"] <= time.time() - end_s


def test_a_fault_without_effect_leaves_the_verdict_unknown(cluster):
    cluster.deaf = {"redis-1"}
    ended = carried_out(cluster)
    assert_judged_and_put_away(ended, cluster)
    assert ended.outcome.verdicts["faults"].valid == "unknown"
    assert ended.outcome.valid == "unknown"


def test_a_broken_lock_is_detected(cluster):
    cluster.service.broken = True
    ended = carried_out(cluster, schedule=[])
    assert_judged_and_put_away(ended, cluster)
    assert ended.outcome.verdicts["lease_exclusion"].valid is False


def test_a_violation_that_is_waited_for_ends_the_run_early(cluster, monkeypatch):
    monkeypatch.setattr(timed, "EVERY_S", 0.05)
    cluster.service.broken = True
    slowly = {"hold": "0..20ms", "think": "0..20ms"}
    ended = carried_out(cluster, replace(SPEC, time_s=600.0, until=("any",), **slowly), [])
    assert_judged_and_put_away(ended, cluster)
    assert ended.outcome.valid is False
    assert ended.results["stats"]["duration_s"] < 300


@pytest.mark.oracle
def test_a_node_that_dies_at_any_call_ends_in_a_judged_run(cluster):
    """From that call on the node answers nothing."""
    for call in undisturbed_calls(cluster):

        def die(of, node=call.node):
            def dead(now):
                if now.node == node:
                    raise NoAnswer(f"{node} is dead")

            of.before = dead
            dead(Call(node, "", ""))

        with fresh(call, die) as dying:
            ended = carried_out(dying)
            assert isinstance(ended.error, RemoteError | Crashed | None), call
            assert_judged_and_put_away(ended, dying, but={call.node})


@pytest.mark.oracle
@pytest.mark.parametrize("error", [OSError(28, "No space left"), ValueError("a defect of ours")])
def test_an_error_at_any_call_ends_in_a_judged_run_and_an_unhandled_one_is_raised(cluster, error):
    for call in undisturbed_calls(cluster):

        def fail(of):
            raise error

        with fresh(call, fail) as failing:
            ended = carried_out(failing)
            assert ended.error in (error, None), call
            # A process that can be neither ended nor resumed stays until the nodes are removed.
            assert_judged_and_put_away(ended, failing, but={call.node})


@pytest.mark.parametrize("gone", [True, False])
def test_a_lock_that_does_not_come_back_does_not_fail_a_service_whose_server_was_removed(
    cluster, monkeypatch, gone
):
    granting, granted = cluster.service.acquire, []

    def once(*asked):
        if granted:
            return None
        granted.append(granting(*asked))
        return granted[0]

    def dead(call):
        if gone and granted and call.node == "redis-1":
            raise NoAnswer("redis-1 is gone")

    monkeypatch.setattr(cluster.service, "acquire", once)
    cluster.before = dead
    ended = carried_out(cluster, schedule=[])
    assert_judged_and_put_away(ended, cluster, but={"redis-1"})
    assert ended.outcome.verdicts["liveness"].valid == ("unknown" if gone else False)
    assert ended.outcome.verdicts["faults"].valid == ("unknown" if gone else True)
    named = [op.type for op in history.read(ended.folder / "history.jsonl") if op.f == "lost-node"]
    assert named == (["invoke", "info"] if gone else [])


def test_the_error_that_ended_a_run_is_reported_and_not_the_one_of_its_judgement(
    cluster, monkeypatch
):
    def before(call):
        if call.verb == "spawn":
            raise RemoteError("client-1 is gone")

    def no_check(*_):
        raise ZeroDivisionError("a checker's defect")

    cluster.before = before
    monkeypatch.setattr(verdict, "check", no_check)
    with pytest.raises(RemoteError, match="client-1 is gone"):
        run(SPEC, cluster, lambda status: None, schedule=[])
    assert cluster.left == []


def test_a_run_whose_terminal_was_closed_continues(cluster, monkeypatch):
    monkeypatch.setattr("fencepost.harness.execute.progress._EVERY_S", 0.005)
    told = []

    def gone(status):
        told.append(status)
        raise OSError(5, "Input/output error")

    ended = carried_out(cluster, progress=gone)
    assert len(told) == 1
    assert ended.outcome.valid is True


def test_a_fault_that_the_nodes_cannot_have_is_not_drawn(cluster):
    cluster.netem = False
    spec = replace(FAULTY, nemesis=("packet",), interval_s=0.3, time_s=3.0)
    ended = carried_out(cluster, spec, schedule=None)
    facts = results.read_test(ended.folder)
    assert set(facts["lacks"]) == {"packet/delay", "packet/duplicate", "packet/reorder"}
    assert {fault["arguments"]["kind"] for fault in facts["schedule"]} == {"loss"}
