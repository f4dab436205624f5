"""The answer for a caller: by the selected questions, and in a sentence."""

from __future__ import annotations

import json

import pytest

from fencepost.report.words.answer import counted, sentence
from fencepost.report.words.questions import questions

CHECKED = ["lease_exclusion", "mutual_exclusion", "resource"]


@pytest.fixture
def found(store):
    """Return results.json's content of a story, judged by these checkers."""

    def judged(story, checkers=CHECKED, **test):
        return json.loads((store(story, checkers=checkers, **test) / "results.json").read_text())

    return judged


@pytest.fixture
def paused(clash):
    """A client is paused past its lease, and another is granted the lock and writes."""
    clash.ops = [op for op in clash.ops if op.time < 2_800_000_000]
    return clash


def test_a_paused_client_fails_questions_about_clients_and_data_and_not_about_the_service(
    found, paused
):
    results = found(paused)
    assert counted(results) is False
    assert counted(results, ["service"]) is True
    assert counted(results, ["lease_exclusion"]) is True
    for asked in (["clients"], ["data"], ["service", "clients"], ["mutual_exclusion"]):
        assert counted(results, asked) is False


def test_a_lock_that_is_granted_twice_fails_questions_about_the_service(found, clash):
    assert counted(found(clash), ["service"]) is False


def test_an_unjudged_question_is_unknown(found, calm):
    results = found(calm, ["lease_exclusion"])
    assert counted(results, ["service"]) is True
    assert counted(results, ["data"]) == counted(results, ["resource"]) == "unknown"


def test_a_fault_without_its_receipt_leaves_every_question_unknown_unless_it_is_answered_no(
    found, paused
):
    paused.fault(1500, 1600, "pause", ["redis-1"], proved=False)
    results = found(paused)
    assert counted(results, ["service"]) == counted(results, ["lease_exclusion"]) == "unknown"
    assert counted(results, ["clients"]) is False


def test_a_violation_that_no_lock_service_can_prevent_is_labelled_so_with_the_fault(found, paused):
    for op in paused.ops:
        if op.f == "pause":
            op.value["arguments"]["words"] = "client-1 is paused"
    said = sentence(found(paused))
    assert said.startswith("Invalid: the lock service kept its promise, two clients believed")
    assert said.endswith(
        "A client worked past its lease (client-1 is paused): no lock service can prevent this; a "
        "fencing token can keep it from the data."
    )


@pytest.mark.parametrize(
    ("granted", "told"),
    [
        (200, "The lock went with its holder's connection (s1 crashes), and the holder had not "
         "learned of that: no lock without a lease can prevent this; a fencing token can"),
        (2000, "A client worked past its lease: no lock service can prevent this"),
    ],
)  # fmt: skip
def test_a_lock_that_is_lost_with_its_server_is_lost_before_its_lease_expires(
    found, story, granted, told
):
    story.acquire(0, 0)
    story.fault(100, 150, "kill", ["s1"])
    story.acquire(granted, 1)
    lock = {"name": "l", "options": {}, "ends_with": "connection"}
    results = found(story, lock=lock, servers=["s1"])
    for fault in results["faults"]:
        fault["arguments"]["words"] = "s1 crashes"
    said = sentence(results)
    assert "the lock service kept its promise, two clients believed" in said
    assert told in said


def test_a_guard_that_kept_a_late_client_from_the_data_is_named(found, paused):
    paused.ops = [op for op in paused.ops if op.f != "write" or op.time < 2_505_000_000]
    said = sentence(found(paused))
    assert said.endswith("no lock service can prevent this; the guard kept it from the data.")


def test_a_fence_that_had_seen_no_higher_token_is_not_reported_as_a_remedy(found, story):
    sleeper = story.acquire(0, 0)
    story.fault(10, 2500, "pause", ["client-1"])
    holder = story.acquire(2490, 1)
    seen = story.read(2500, 1)
    story.write(2505, 0, sleeper, story.read(2502, 0))
    story.write(2510, 1, holder, seen)
    results = found(story, [*CHECKED, "fencing"], lock={"name": "l", "options": {}, "token": True})
    assert results["checkers"]["fencing"]["valid"] is True
    said = sentence(results)
    assert "so a fence alone does not help" in said and "guard fenced-version" in said


def test_a_service_that_broke_its_promise_is_not_excused(found, clash):
    said = sentence(found(clash))
    assert "the lock service broke its promise" in said
    assert said.endswith("A sound lock service keeps its promise under these faults.")
    assert "no lock service can prevent" not in said


@pytest.fixture
def expired(story):
    """A library hands out a grant whose lease has expired, and another client is granted."""
    story.acquire(0, 0, took=1700)
    story.acquire(1900, 1)
    for op in story.ops:
        if "deadline" in op.value:
            op.value["deadline"] = 1_000_000_000 if op.process == 0 else 5_000_000_000
    return story


BY_A_LOOK = (
    "A client was granted the lock when its lease had expired: a lock that looks at its clock "
    "before it returns prevents this."
)


@pytest.mark.parametrize("checkers", [CHECKED, ["mutual_exclusion"]])
def test_a_grant_whose_lease_had_expired_is_no_promise_kept_and_can_be_prevented(
    found, expired, checkers
):
    results = found(expired, checkers)
    said = sentence(results)
    assert "kept its promise" not in said and "no lock service can prevent" not in said
    if "lease_exclusion" in checkers:
        assert counted(results, ["service"]) is False
    else:
        assert said.endswith(BY_A_LOOK)
    service, clients, _ = questions(results["checkers"])
    assert clients.valid is False and clients.remark == ""
    assert service.clause != "the lock service kept its promise"


def test_a_grant_that_may_have_expired_while_its_client_was_stopped_accuses_no_lock(found, expired):
    expired.fault(900, 1690, "pause", ["client-1"])
    results = found(expired, ["mutual_exclusion"])
    assert sentence(results).endswith("does not show whether the lock could have known.")
    assert questions(results["checkers"])[1].remark == ""


def test_two_holders_that_nothing_explains_are_not_laid_on_a_client(found, story):
    story.acquire(0, 0)
    story.acquire(500, 1)
    said = sentence(found(story, ["mutual_exclusion"]))
    assert said.endswith("does not show why the lock was granted to the second client.")


def test_a_run_without_faults_says_so(found, calm):
    calm.ops = [op for op in calm.ops if op.process != "nemesis"]
    said = sentence(found(calm, nemesis=[]))
    assert said.startswith("Valid: the lock service kept its promise, no two clients believed")
    assert said.endswith("No fault was requested, so it covers none.")


def test_a_run_whose_faults_were_never_injected_does_not_claim_that_none_was_requested(found, calm):
    calm.ops = [op for op in calm.ops if op.process != "nemesis"]
    said = sentence(found(calm, nemesis=["pause"]))
    assert said.startswith("Unknown: as far as it was tested")
    assert "No fault was requested" not in said


def test_a_run_with_faults_that_went_well_says_no_more_than_the_headline(found, calm):
    assert sentence(found(calm)).endswith("and the resource was not damaged.")
