"""After the last heal the lock is granted in time, too late, never, or the outcome is unknown."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from fencepost.checker.history.history import History
from fencepost.checker.liveness import liveness
from tests.checker.liveness_stories import (
    BOUND,
    LEASE,
    LIMIT,
    SERVERS,
    STUCK,
    asks_in_vain,
    cut,
    dies_with_the_lock,
    healed_at_5000,
    unheard,
    verdict,
)
from tests.histories import MS


def test_a_lock_that_is_granted_in_time_after_the_last_heal_is_alive(story):
    cut(story, 0, 5000, *SERVERS)
    asks_in_vain(story, 0, 5100)
    story.grant(1, "h", asked=5000, at=5000 + LIMIT, until=9000)
    assert verdict(story).valid is True


def test_a_lock_that_is_granted_too_late_after_the_last_heal_is_not(story):
    cut(story, 0, 5000, *SERVERS)
    asks_in_vain(story, 0, 8100)
    story.grant(1, "h", asked=5000, at=5000 + LIMIT + 1, until=9900)
    found = verdict(story)
    assert found.valid is False
    assert found.summary == (
        "After the last fault was healed: the lock should have been granted by 8.000 s, "
        "but was only after 3.001 s."
    )
    assert found.evidence == [
        {
            "what": found.summary,
            "time_ns": 5000 * MS,
            "valid": False,
            "waited_s": 3.001,
            "lock": "orders",
        }
    ]


def test_a_lock_that_is_never_granted_again_is_dead(story):
    story.grant(1, "h", at=100, until=1100)
    story.release(1, "h", at=200)
    cut(story, 300, 5000, *SERVERS)
    asks_in_vain(story, 300, 8200)
    found = verdict(story)
    assert found.valid is False
    assert "but never was" in found.summary


def test_the_wait_starts_only_when_the_clients_are_ready(story):
    asks_in_vain(story, 5000, 6900)
    assert verdict(story).valid is False
    found = verdict(story, ready_s=5.0)
    assert (found.valid, found.evidence[0]["time_ns"]) == ("unknown", 5000 * MS)
    assert found.summary == "From the start: the history ends too early to tell, before 8.000 s."
    asks_in_vain(story, 6900, 7200)
    assert verdict(story, ready_s=5.0).valid is False


def test_a_fault_that_is_healed_later_counts_and_not_when_the_clients_were_ready(story):
    cut(story, 1000, 5000, *SERVERS)
    asks_in_vain(story, 1000, 8200)
    found = verdict(story, ready_s=4.0)
    assert (found.valid, found.evidence[0]["time_ns"]) == (False, 5000 * MS)


def test_a_history_that_ends_before_the_limit_leaves_it_unknown(story):
    healed_at_5000(story)
    asks_in_vain(story, 0, 7900)
    found = verdict(story)
    assert found.valid == "unknown"
    assert found.summary == (
        "After the last fault was healed: the history ends too early to tell, before 8.000 s."
    )
    assert [(row["valid"], row["waited_s"]) for row in found.evidence] == [("unknown", None)]


def test_earlier_tests_do_not_make_up_for_a_history_that_ends_too_soon(story):
    dies_with_the_lock(story)
    story.grant(2, "h2", at=1050, until=2050)
    story.release(2, "h2", at=1060)
    cut(story, 2000, 5000, *SERVERS)
    unheard(story, 4000)
    asks_in_vain(story, 2000, 7900)
    found = verdict(story)
    assert (found.valid, found.details["after_deaths_s"]) == ("unknown", [0.95])


def test_a_lock_without_a_request_after_the_heal_was_not_tested_there(story):
    story.grant(1, "h", at=100, until=1100)
    story.release(1, "h", at=200)
    cut(story, 300, 5000, *SERVERS)
    story.read(1, 9000, None, 0)
    found = verdict(story)
    assert found.valid is True
    assert found.summary == (
        "The lock was granted in time whenever it was free and a client asked for it. "
        "Not tested: after the last fault was healed, the end of a lease."
    )
    what = (
        "After the last fault was healed: no client asked for long enough while it was certainly "
        "free."
    )
    assert [(row["what"], row["valid"]) for row in found.evidence] == [(what, "unknown")]


def test_a_fault_that_was_never_healed_leaves_the_last_heal_untested(story):
    story.fault("power", 100, None, SERVERS)
    story.grant(1, "h", at=10, until=20_000)
    asks_in_vain(story, 30_000, 31_000)
    story.read(1, STUCK, None, 0)
    found = verdict(story)
    assert found.valid is True
    assert found.details["untested"] == ["after the last fault was healed", LEASE]


def test_after_the_last_fault_means_the_one_that_ends_last(story):
    cut(story, 0, 5000, *SERVERS)
    story.fault("clock", 100, 7000, ["redis-1"])
    unheard(story, 5000)
    asks_in_vain(story, 5000, STUCK)
    assert "by 10.000 s" in verdict(story).summary


def test_a_family_of_which_nothing_is_known_hides_what_it_may_have_caused(story):
    story.fault("gremlin", 0, 5000, ["redis-1"])
    asks_in_vain(story, 0, 6000)
    story.grant(1, "h", at=6100, until=7000)
    found = verdict(story)
    assert found.valid == "unknown"
    assert found.summary.startswith("It is not known which nodes gremlin keeps from answering.")


def test_it_hides_nothing_of_before_or_after(story):
    story.fault("gremlin", 5000, 9000, ["redis-1"])
    asks_in_vain(story, 0, 2200)
    story.grant(1, "h", at=2300, until=3000)
    assert verdict(story).valid is False
    story.fault("gremlin", 0, 2200, ["redis-1"])
    assert verdict(story).valid == "unknown"
    asks_in_vain(story, 9000, STUCK)
    assert verdict(story).valid is False


def test_such_a_family_hides_nothing_where_clients_asked_for_nothing(story):
    story.fault("gremlin", 0, 5000, ["redis-1"])
    story.grant(1, "h", at=5100, until=6000)
    assert verdict(story).valid is True


def test_a_fault_that_names_its_impaired_targets_is_recognized(story):
    story.fault("gremlin", 0, 5000, ["redis-1"])
    asks_in_vain(story, 0, STUCK)
    known = [
        replace(op, value=op.value | {"impairs": ["redis-1"]}) if op.process == "nemesis" else op
        for op in story.history()
    ]
    found = liveness(History(known), {"liveness_bound_s": BOUND / 1000})
    assert found.valid is False


@pytest.mark.parametrize(("end", "valid"), [(8000, "unknown"), (8001, False)])
def test_a_history_that_ends_in_the_instant_of_the_limit_ends_too_soon(story, end, valid):
    healed_at_5000(story)
    asks_in_vain(story, 0, 7900)
    story.denied(7, 7900, end)
    found = verdict(story)
    assert found.valid == valid
    assert ("the history ends too early to tell" in found.summary) is (valid == "unknown")
