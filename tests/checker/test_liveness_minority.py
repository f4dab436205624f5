"""A lock that promises it stays usable while a minority of servers does not answer."""

from __future__ import annotations

import pytest

from tests.checker.liveness_stories import (
    LEASE,
    LIMIT,
    MINORITY,
    SERVERS,
    asks,
    asks_in_vain,
    verdict,
)


@pytest.fixture
def minority_down(story):
    """Two of five servers are away for long, and no client is granted the lock meanwhile."""
    story.grant(2, "h0", at=10, until=1000)
    story.release(2, "h0", at=20)
    for server in SERVERS[:2]:
        story.fault("kill", 100, 9000, [server])
    asks_in_vain(story, 100, 9000)
    story.grant(3, "h1", at=9100, until=9900)
    return story


def test_a_promise_to_survive_a_minority_is_checked(minority_down):
    found = verdict(minority_down, servers=SERVERS, promises={"minority": True})
    assert found.valid is False
    assert "With redis-2 impaired from 0.100 s" in found.summary


def test_a_lock_that_promised_nothing_of_the_kind_is_not_blamed(minority_down):
    assert verdict(minority_down, servers=SERVERS).valid is True


def test_a_majority_that_is_down_breaks_no_promise_about_a_minority(minority_down):
    minority_down.fault("kill", 50, 9050, [SERVERS[2]])
    assert verdict(minority_down, servers=SERVERS, promises={"minority": True}).valid is True


def test_a_lock_that_works_on_without_a_minority_keeps_its_promise(story):
    story.fault("kill", 100, 9000, [SERVERS[0]])
    story.grant(2, "h1", at=500, until=1500)
    story.grant(3, "h2", at=9100, until=9900)
    found = verdict(story, servers=SERVERS, promises={"minority": True})
    assert found.valid is True
    assert found.details["waits"] == 2


def test_a_jumped_clock_keeps_no_server_from_answering(story):
    story.fault("clock", 100, 9000, [SERVERS[0]])
    asks_in_vain(story, 100, 9000)
    story.grant(3, "h1", at=9100, until=9900)
    assert verdict(story, servers=SERVERS).valid is True  # it may prolong leases
    assert verdict(story, **MINORITY).valid is False


def grants_before_and_after(story):
    story.grant(2, "h0", at=10, until=50)
    story.release(2, "h0", at=20)
    asks_in_vain(story, 100, 9000)
    story.grant(3, "h1", at=9100, until=9900)


@pytest.mark.parametrize(
    ("servers", "down", "valid"),
    [(3, 1, False), (4, 1, False), (4, 2, True), (5, 2, False), (5, 3, True)],
)
def test_a_minority_is_fewer_than_half_of_the_servers(story, servers, down, valid):
    grants_before_and_after(story)
    story.fault("kill", 100, 9000, SERVERS[:down])
    promised = MINORITY | {"servers": SERVERS[:servers]}
    assert verdict(story, **promised).valid is valid


def test_servers_that_faults_of_any_family_impair_add_up(story):
    grants_before_and_after(story)
    for server, family in zip(SERVERS, ("kill", "power", "disk"), strict=False):
        story.fault(family, 100, 9000, [server])
    found = verdict(story, **MINORITY)
    assert found.valid is True
    assert found.details["untested"] == ["minority", LEASE]


def test_a_cut_between_a_minority_and_the_others_impairs_the_minority(story):
    grants_before_and_after(story)
    near, far = SERVERS[:2], [*SERVERS[2:], "client-2", "client-3", "client-7"]
    links = [[one, other] for one in near for other in far]
    story.fault("partition", 100, 9000, [*near, *far], arguments={"links": links})
    assert verdict(story, **MINORITY).valid is False


def test_a_client_impaired_together_with_the_minority_may_be_next_in_the_queue(story):
    grants_before_and_after(story)
    story.fault("kill", 100, 9000, [SERVERS[0]])
    story.fault("pause", 100, 9000, ["client-2"])
    assert verdict(story, **MINORITY).valid is False  # it asks for nothing
    asks(story, 90, 9050, process=2)
    found = verdict(story, **MINORITY)
    assert found.valid is True
    assert found.details["untested"] == ["minority", LEASE]


def test_with_a_minority_impaired_the_lock_has_a_lease_and_the_bound(story):
    story.fault("kill", 100, 9000, [SERVERS[0]])
    asks_in_vain(story, 100, 9000)
    story.grant(3, "h1", at=9100, until=9900)
    assert "the lock should have been granted by 3.100 s" in verdict(story, **MINORITY).summary


@pytest.mark.parametrize(("end", "untested"), [(100 + LIMIT, []), (99 + LIMIT, ["minority"])])
def test_a_minority_that_is_impaired_for_less_than_a_lease_and_the_bound_tests_nothing(
    story, end, untested
):
    story.fault("kill", 100, end, [SERVERS[0]])
    story.grant(2, "h1", at=500, until=600)
    story.release(2, "h1", at=550)
    story.grant(3, "h2", at=end + 100, until=9900)
    found = verdict(story, **MINORITY)
    assert found.valid is True
    assert found.details["untested"] == [*untested, LEASE]


def in_time(story):
    """Return the spans with a minority impaired in which a client was granted the lock in time."""
    found = verdict(story, **MINORITY)
    assert found.valid is True
    return [row["what"] for row in found.evidence if row["what"].startswith("With")]


def test_servers_that_are_back_are_not_named_and_a_short_failure_hides_no_long_one(story):
    story.fault("kill", 100, 300, [SERVERS[0]])
    story.fault("kill", 400, 9000, [SERVERS[1]])
    story.grant(2, "h1", at=500, until=1500)
    story.release(2, "h1", at=510)
    assert in_time(story) == ["With redis-2 impaired from 0.400 s: granted after 0.100 s."]


@pytest.mark.parametrize("paused", [True, False])
def test_a_fault_of_a_client_that_is_on_as_well_gives_the_servers_more_time(story, paused):
    """A client that is stopped until 12 s may be next in the queue. Else the limit is 3.1 s."""
    story.fault("kill", 100, 20_000, [SERVERS[0]])
    if paused:
        story.fault("pause", 500, 12_000, ["client-2"])
    for process, at in ((3, 9000), (2, 20_100)):
        story.grant(process, f"h{process}", at=at, until=at + 500)
        story.release(process, f"h{process}", at=at + 10)
    told = ["With redis-1 impaired from 0.500 s: granted after 8.500 s."]
    assert in_time(story) == (told if paused else [])


def test_each_begin_and_end_of_a_fault_gives_the_servers_new_time(story):
    grants_before_and_after(story)
    story.fault("kill", 100, 9000, [SERVERS[0]])
    for start in range(2000, 9000, 2000):
        story.fault("pause", start, start + 100, [SERVERS[1]])
    found = verdict(story, **MINORITY)
    assert found.valid is True
    assert found.details["untested"] == ["minority", LEASE]


@pytest.mark.parametrize(("at", "told"), [(4000, "was only after 3.900 s"), (4001, "never was")])
def test_a_grant_after_the_minority_is_back_does_not_count_for_it(story, at, told):
    story.fault("kill", 100, 4000, [SERVERS[0]])
    asks(story, 1000, 3900)
    story.grant(3, "h1", asked=3950, at=at, until=5000)
    found = verdict(story, **MINORITY)
    assert found.valid is False
    assert f"granted by 3.100 s, but {told}." in found.summary


def test_a_minority_that_is_back_before_the_lock_was_due_puts_nothing_to_the_test(story):
    story.grant(2, "h0", at=10, until=7000)
    story.fault("kill", 100, 8000, [SERVERS[0]])
    asks(story, 200, 8500)
    story.grant(3, "h1", at=8600, until=9900)
    found = verdict(story, **MINORITY)
    assert found.valid is True
    assert found.details["untested"] == ["minority", LEASE]


def test_each_lock_must_be_usable_with_a_minority_impaired(story):
    story.fault("kill", 100, 9000, [SERVERS[0]])
    asks(story, 100, 8900, lock="a")
    story.grant(2, "h", at=1000, until=2000, lock="b")
    story.release(2, "h", at=1010, lock="b")
    for process, lock in ((3, "a"), (4, "b")):
        story.grant(process, f"l{lock}", at=9100, until=9900, lock=lock)
    found = verdict(story, **MINORITY)
    assert found.valid is False
    assert [e["lock"] for e in found.evidence] == ["a"]


@pytest.mark.parametrize(("at", "untested"), [(100 + LIMIT, []), (101 + LIMIT, ["minority"])])
def test_a_grant_at_the_moment_at_which_the_minority_is_back_counts_for_it(story, at, untested):
    story.fault("kill", 100, 100 + LIMIT, [SERVERS[0]])
    story.grant(3, "h1", asked=LIMIT, at=at, until=9900)
    story.release(3, "h1", at=at + 10)
    found = verdict(story, **MINORITY)
    assert found.valid is True
    assert [one for one in found.details["untested"] if one == "minority"] == untested
