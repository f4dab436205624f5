"""A long run on a cluster in memory: cut into segments, each judged, and their sum."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from fencepost.checker.history import history
from fencepost.harness.errors import Crashed
from fencepost.harness.execute import long, timed
from fencepost.harness.judge import judge, judge_process, segments
from fencepost.harness.judge.judge import ENDED_FROM_OUTSIDE, GOING_ON
from fencepost.harness.locked import locked
from fencepost.harness.remote.remote import RemoteError
from fencepost.harness.results import results
from fencepost.harness.spec import from_arguments as written
from tests import schema
from tests.harness.disturbed import PAUSES, SPEC, carried_out

pytestmark = pytest.mark.slow

HEALED_AGAIN = 2  # at its end, and one time before
# Long enough for requests of both clients in each segment, on a busy machine too. There a client
# may stand still for longer than a lease.
LONG = replace(SPEC, time_s=1.2, segment_s=0.4, seed=7, liveness_bound_s=10.0)


class Here:
    """Judge in this process instead of in a child process."""

    def __init__(self, place, notes, written):
        self.place = place
        judge.judge(place, notes, written)

    def found(self):
        return results.read(self.place)


@pytest.fixture
def here(monkeypatch):
    monkeypatch.setattr(judge_process, "Process", Here)


@pytest.fixture
def long_run(cluster, here):
    ended = carried_out(cluster, LONG, None)
    assert ended.error is None
    return ended


def parts(ended):
    return sorted((ended.folder / results.SEGMENTS).iterdir())


def ops(part):
    return history.read(part / "history.jsonl").clients()


def test_only_a_run_of_more_than_one_and_a_half_segments_is_cut():
    assert not long.is_long(replace(SPEC, time_s=15, segment_s=10))
    assert long.is_long(replace(SPEC, time_s=15.1, segment_s=10))


def test_each_segment_is_a_run_with_a_lock_a_seed_a_verdict_and_a_page_of_its_own(long_run):
    assert [part.name for part in parts(long_run)] == ["0001", "0002", "0003"]
    for number, part in enumerate(parts(long_run), 1):
        test = json.loads((part / "test.json").read_text())
        assert (test["segment"], test["seed"]) == (number, 6 + number)
        assert results.read(part)["valid"] is True
        assert (part / "report.html").is_file()
        locks = {op.value["lock"] for op in ops(part) if "lock" in op.value}
        resources = {op.value["resource"] for op in ops(part) if "resource" in op.value}
        assert (locks, resources) == ({f"orders.{number:04d}"}, {f"account.{number:04d}"})


def _starts(call):
    return call.what.startswith("fencepost-node start ")


def test_servers_are_started_for_the_first_segment_alone(cluster, here):
    carried_out(cluster, LONG, None)
    started = [call for call in cluster.calls if _starts(call) and "redis-1" in call.node]
    assert len(started) == 1


def test_the_sum_is_valid_where_all_segments_are(long_run):
    found = long_run.results
    assert (found["valid"], found["live"], found["run_notes"]) == (True, False, [])
    each = [results.read(part) for part in parts(long_run)]
    assert found["stats"]["holds"] == sum(one["stats"]["holds"] for one in each) > 0
    assert found["checkers"]["lease_exclusion"]["summary"] == "In all of 3 segments."
    assert long_run.outcome.valid is True
    schema.check("results", found)
    assert 'href="segments/0002/report.html"' in (long_run.folder / "report.html").read_text()


def break_in(cluster, segment):
    """Let the service grant a held lock in this segment only."""
    begun = []

    def before(call):
        if call.verb == "spawn":
            begun.append(call)
            cluster.service.broken = (len(begun) + 1) // len(SPEC.clients) == segment

    cluster.before = before


def test_a_long_run_is_repeated_from_its_seed_and_a_segment_with_its_faults(long_run):
    longer = replace(LONG, time_s=60.0, segment_s=20.0, nemesis=("pause:one",), interval_s=2.0)
    for spec, folder in ((longer, long_run.folder), (long.segment(longer, 2, 20.0), None)):
        place = folder or parts(long_run)[1]
        test = json.loads((place / "test.json").read_text())
        schedule = {"schedule": [PAUSES[0].to_json()]} if folder is None else {}
        results.write(place / "test.json", test | spec.to_json() | schedule)
        again, faults = written.replayed(str(place), "", {}, ())
        assert (again.seed, again.segment, long.is_long(again)) == (
            spec.seed, spec.segment, folder is not None
        )  # fmt: skip
        assert (faults is None) is (folder is not None)


def test_one_broken_segment_makes_the_run_invalid_and_is_named(cluster, here):
    break_in(cluster, 2)
    ended = carried_out(cluster, LONG, None)
    found = ended.results
    assert [row["valid"] for row in found["segments"]] == [True, False, True]
    assert found["valid"] is False
    broken = found["checkers"]["lease_exclusion"]
    assert broken["summary"].startswith("Broken in 1 of 3 segments (2). Segment 2: ")
    assert broken["evidence"][0]["segment"] == 2
    assert found["first_violation"]["segment"] == 2
    page = (ended.folder / "report.html").read_text()
    assert "Invalid: the lock service broke its promise" in page


def test_a_violation_that_is_waited_for_ends_the_run_with_its_segment(cluster, here):
    break_in(cluster, 2)
    ended = carried_out(cluster, replace(LONG, until=("lease_exclusion",)), None)
    assert [row["valid"] for row in ended.results["segments"]] == [True, False]


def test_a_segment_ends_when_it_is_full(cluster, here, monkeypatch):
    monkeypatch.setattr(timed, "MOST_EVENTS", 60)
    ended = carried_out(cluster, replace(LONG, time_s=0.3, segment_s=0.15), None)
    rows = ended.results["segments"]
    assert len(rows) > 2
    assert all(results.read_test(part)["time_s"] < 0.15 for part in parts(ended))


def test_a_failure_ends_the_run_and_its_recorded_part_is_judged(cluster, here):
    def before(call):
        if call.verb == "spawn" and len([c for c in cluster.calls if c.verb == "spawn"]) > 2:
            raise KeyboardInterrupt

    cluster.before = before
    ended = carried_out(cluster, LONG, None)
    assert isinstance(ended.error, KeyboardInterrupt)
    found = ended.results
    assert [row["valid"] for row in found["segments"]] == [True, "unknown"]
    assert found["valid"] == "unknown"
    assert "The run ended early" in found["checkers"]["run"]["summary"]
    assert cluster.left == []


@pytest.mark.parametrize("for_good", [False, True])
def test_after_an_unhealed_fault_servers_restart_or_the_run_ends(
    cluster, here, monkeypatch, for_good
):
    tried = []

    def before(call):
        if call.verb == "signal" and call.what == "SIGCONT":
            tried.append(call)
            if for_good or len(tried) <= HEALED_AGAIN:
                raise RemoteError("the node does not answer")

    def mended(cluster, nodes):
        if for_good:
            raise Crashed("redis-1 cannot be healed")

    cluster.before = before
    monkeypatch.setattr(long, "heal", mended)
    monkeypatch.setattr(long, "schedule_of", lambda spec, lacks: PAUSES[:1])
    ended = carried_out(cluster, LONG, None)
    started = [call for call in cluster.calls if _starts(call) and "redis-1" in call.node]
    rows = ended.results["segments"]
    assert rows[0]["valid"] == "unknown"
    if for_good:
        assert "cannot be healed" in str(ended.error)
        assert (len(rows), len(started)) == (1, 1)
    else:
        assert ended.error is None
        assert (len(rows), len(started)) == (3, 2)


def test_a_stored_long_run_is_judged_again_as_it_was(long_run):
    before = long_run.results
    (long_run.folder / "report.html").unlink()
    for part in parts(long_run):
        (part / "results.json").unlink()
    outcome = segments.judge_run(long_run.folder)
    # A segment without results was ended from outside.
    assert outcome.valid == "unknown"
    assert long_run.results["segments"][0]["holds"] == before["segments"][0]["holds"]
    assert (long_run.folder / "report.html").is_file()


def test_judged_again_a_run_keeps_its_notes_and_its_verdict(long_run):
    before = long_run.results
    assert segments.judge_run(long_run.folder).valid is True
    assert long_run.results == before


def test_a_run_that_was_killed_says_so(long_run):
    (long_run.folder / "results.json").unlink()
    outcome = segments.judge_run(long_run.folder)
    assert outcome.valid == "unknown"
    assert outcome.results["run_notes"] == [ENDED_FROM_OUTSIDE]


def test_a_run_in_progress_is_judged_up_to_its_last_event(long_run):
    (long_run.folder / "results.json").unlink()
    with locked(long_run.folder / results.SEGMENTS):
        outcome = segments.judge_run(long_run.folder)
    assert (outcome.valid, outcome.results["live"]) == ("unknown", True)
    assert outcome.results["notes"] == [GOING_ON]


def test_processes_of_their_own_judge_segments_and_say_why_one_cannot_be_judged(cluster):
    ended = carried_out(cluster, replace(LONG, time_s=0.8), None)
    assert ended.results["valid"] is True
    (parts(ended)[1] / "history.jsonl").write_text("no op\n{}\n")
    outcome = segments.judge_run(ended.folder)
    assert [row["valid"] for row in outcome.results["segments"]] == [True, "unknown"]
    assert outcome.valid == "unknown"
    assert "Segment 2: It could not be judged: " in " ".join(outcome.results["notes"])
