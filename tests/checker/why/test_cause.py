"""The cause of two holders is named where the history shows it, and no other is."""

from __future__ import annotations

from random import Random
from types import SimpleNamespace

import pytest
from msgspec.structs import replace

from fencepost.checker.exclusion import lease_exclusion, mutual_exclusion
from fencepost.checker.history.history import History
from fencepost.checker.ownership import ownership
from fencepost.checker.resource import resource
from fencepost.checker.why.granted import _Late
from tests.checker.cause_stories import TEST, granted_by, links
from tests.histories import MS, Story


def overlapping():
    story = Story()
    story.grant(1, "h1", at=100, until=1100)
    story.grant(2, "h2", at=1500, until=2500)
    story.release(1, "h1", at=2000)
    return story


def test_a_holder_that_was_paused_past_its_lease_is_said_to_have_been_paused():
    story = overlapping()
    story.fault("pause", 500, 1900, ["client-1"])
    story.fault("clock", 1400, 1600, ["client-2"], arguments={"offset_s": 1})
    sorts, found, summary = links(mutual_exclusion, story)
    assert sorts == ["lease-over", "kept-by-fault"]
    assert found[0]["time_ns"] == 1100 * MS
    assert found[1]["nodes"] == ["client-1"]
    assert found[1]["family"] == "pause"
    assert found[1]["sure"] is True
    assert found[1]["what"].startswith("This kept client-1 from giving it up: pause of client-1")
    assert "(from 0.500 s to 1.9" in found[1]["what"]
    assert summary.endswith("at 1.500 s (pause of client-1).")


def test_a_holder_that_was_cut_off_is_said_to_have_been_cut_off_even_from_storage():
    story = overlapping()
    cut = {"links": [["client-1", "storage"]], "words": "client-1 is cut off from storage"}
    story.fault("partition", 600, 1900, ["client-1", "storage"], arguments=cut)
    sorts, found, summary = links(mutual_exclusion, story)
    assert sorts == ["lease-over", "kept-by-fault"]
    assert found[1]["sure"] is False
    assert found[1]["what"].startswith("This may have kept client-1 from giving it up: client-1 is")
    assert summary.endswith("(likely: client-1 is cut off from storage).")


def test_faults_on_other_clients_or_clocks_delay_no_holder():
    story = overlapping()
    story.fault("pause", 500, 1900, ["client-3"])
    story.fault("clock", 500, 1900, ["client-1"], arguments={"offset_s": 1})
    cut = {"links": [["client-3", "redis-1"]]}
    story.fault("partition", 500, 1900, ["client-3", "redis-1"], arguments=cut)
    sorts, found, summary = links(mutual_exclusion, story)
    assert sorts == ["lease-over", "kept-on"]
    assert found[1]["what"] == (
        "No fault explains why client-1 (process 1) had not given it up 0.400 s later"
    )
    assert summary.endswith("(its holder kept it past its lease).")


def test_a_fault_without_a_receipt_is_no_sure_cause():
    story = overlapping()
    story.fault("pause", 500, 1900, ["client-1"], proved=False)
    assert links(mutual_exclusion, story)[1][1]["sure"] is False


def twice():
    story = Story()
    story.grant(1, "h1", at=100, until=1100)
    story.grant(2, "h2", at=600, until=1600)
    return story


@pytest.mark.parametrize(
    ("family", "targets", "named"),
    [
        ("clock", ["redis-2"], True),
        ("kill", ["redis-2"], True),
        ("pause", ["redis-2"], False),
        ("clock", ["client-1"], False),
        ("kill", ["client-3"], False),
    ],
)
def test_a_server_that_may_have_forgotten_is_named_and_nothing_else(family, targets, named):
    story = twice()
    story.fault(family, 300, 400, targets)
    sorts, found, summary = links(lease_exclusion, story)
    assert sorts == (["forgot"] if named else ["none"])
    assert found[0]["sure"] is False
    assert summary.endswith(f"(likely: {family} of {targets[0]})." if named else "(not explained).")


def test_a_fault_on_a_server_before_the_first_request_made_it_forget_nothing():
    story = twice()
    story.fault("kill", 10, 50, ["redis-2"])
    assert links(lease_exclusion, story)[0] == ["none"]


@pytest.mark.parametrize(
    ("family", "target", "named"),
    [("kill", "client-3", False), ("kill", "redis-2", True), ("kill", "client-4", False)],
)
def test_without_a_list_of_servers_a_client_is_no_server_that_forgets(family, target, named):
    """A client is known by its ops, or by the test's list."""
    story = twice()
    story.denied(3, 200, 250)
    story.fault(family, 300, 400, [target])
    test = {"failed_release": "ended", "clients": ["client-4"]}
    assert links(lease_exclusion, story, test)[0] == (["forgot"] if named else ["none"])


def test_where_no_server_granted_both_none_forgot():
    story = Story()
    granted_by(story, 1, "h1", 100, 1100, ["redis-1"])
    story.fault("kill", 300, 400, ["redis-1"])
    granted_by(story, 2, "h2", 600, 1600, ["redis-2", "redis-3"])
    assert links(lease_exclusion, story)[0] == ["none"]


def test_a_holder_within_its_lease_needs_no_explanation():
    story = twice()
    story.fault("pause", 200, 900, ["client-1"])
    story.fault("kill", 300, 400, ["redis-2"])
    for checker in (lease_exclusion, mutual_exclusion):
        assert links(checker, story)[0] == ["forgot"]


def test_of_the_servers_those_that_granted_both_forgot():
    story = Story()
    granted_by(story, 1, "h1", 100, 1100, ["redis-1", "redis-2"])
    story.fault("clock", 300, 400, ["redis-2"])
    story.fault("kill", 300, 400, ["redis-3"])
    granted_by(story, 2, "h2", 600, 1600, ["redis-2", "redis-3"])
    sorts, found, summary = links(lease_exclusion, story)
    assert sorts == ["granted-both", "forgot"]
    assert found[0]["what"] == (
        "Hold h1 was granted by redis-1 and redis-2, hold h2 by redis-2 and redis-3: "
        "redis-2 granted both"
    )
    assert found[1]["nodes"] == ["redis-2"]
    assert summary.endswith("(likely: clock of redis-2).")


def stolen():
    story = Story()
    story.grant(1, "h1", at=0, until=1000)
    story.grant(2, "h2", at=1100, until=2100)
    story.release(1, "h1", at=1300)
    story.grant(3, "h3", at=1400, until=2400)
    return story


def test_a_release_of_an_expired_hold_is_named_as_the_event_that_freed_the_lock():
    sorts, found, summary = links(lease_exclusion, stolen())
    assert sorts == ["stolen"]
    assert (
        "client-1 (process 1) released hold h1 at 1.300 s, which had ended by 1.000 s"
        in (found[0]["what"])
    )
    assert found[0]["sure"] is False
    assert summary.endswith("(likely freed by a late release of another hold).")


def test_a_release_that_was_refused_freed_nothing():
    story = Story()
    story.grant(1, "h1", at=0, until=1000)
    story.grant(2, "h2", at=1100, until=2100)
    story.release(1, "h1", at=1300, type="fail")
    story.grant(3, "h3", at=1400, until=2400)
    assert links(lease_exclusion, story)[0] == ["none"]


def test_a_late_release_is_explained_by_its_delay():
    story = stolen()
    story.fault("pause", 500, 1250, ["client-1"])
    sorts, found, _ = links(ownership, story)
    assert sorts == ["lease-over", "kept-by-fault"]
    assert "pause of client-1" in found[1]["what"]


def test_a_client_without_a_visible_lease_is_judged_by_its_faults():
    story = Story()
    story.grant(1, "h1", at=0, until=None)
    story.fault("pause", 100, 3000, ["client-1"])
    story.grant(2, "h2", at=2500, until=None)
    for checker in (lease_exclusion, mutual_exclusion):
        sorts, _, summary = links(checker, story)
        assert sorts == ["kept-by-fault"]
        assert summary.endswith("(likely: pause of client-1).")


def test_a_stale_write_is_explained_by_its_own_hold():
    story = Story()
    story.grant(1, "h1", at=0, until=1000)
    story.read(1, 10, None, 0)
    story.grant(2, "h2", at=1100, until=2100)
    story.read(2, 1110, None, 0)
    story.write(2, 1120, "b", 0, 1, hold="h2")
    story.fault("pause", 500, 1197, ["client-1"])
    story.write(1, 1200, "a", 0, 2, hold="h1")
    sorts, found, _ = links(resource, story)
    assert sorts == ["lease-over", "kept-by-fault"]
    assert "pause of client-1 (from 0.500 s to 1.19" in found[1]["what"]


def test_damage_under_an_invisible_session_is_explained_by_the_fault_on_its_holder():
    story = Story()
    story.grant(1, "h1", at=0, until=None)
    story.read(1, 10, None, 0)
    story.fault("pause", 100, 3000, ["client-1"])
    story.grant(2, "h2", at=2500, until=None)
    story.read(2, 2510, None, 0)
    story.write(2, 2520, "b", 0, 1, hold="h2")
    story.write(1, 3010, "a", 0, 2, hold="h1")
    sorts, found, _ = links(resource, story)
    assert sorts == ["kept-by-fault"]
    assert found[0]["nodes"] == ["client-1"]


@pytest.mark.parametrize("order", [(2, 1), (1, 2)])
def test_damage_by_either_of_two_holders_of_running_leases_is_explained_by_the_second_grant(order):
    story = twice()
    story.fault("kill", 300, 400, ["redis-2"])
    story.read(1, 610, None, 0)
    story.read(2, 620, None, 0)
    for stored, process in enumerate(order, 1):
        story.write(process, 600 + 100 * stored, f"v{process}", 0, stored, hold=f"h{process}")
    sorts, found, _ = links(resource, story)
    assert sorts == ["forgot"]
    assert found[0]["nodes"] == ["redis-2"]


def test_a_lease_that_ends_as_the_next_is_granted_has_expired():
    story = Story()
    story.grant(1, "h1", at=100, until=1500)
    story.grant(2, "h2", at=1500, until=2500)
    story.release(1, "h1", at=2000)
    assert links(mutual_exclusion, story)[0] == ["lease-over", "kept-on"]


def test_each_link_has_its_facts_next_to_its_words():
    """Return each link with all its fields except the words."""

    def bare(found):
        return [{name: link[name] for name in link if name != "what"} for link in found]

    story = Story()
    story.grant(1, "h1", asked=100, at=900, until=1900)
    story.fault("pause", 200, 800, ["client-1"])
    story.grant(2, "h2", at=1200, until=2200)
    struck = {"sort": "counted-late", "sure": False, "family": "pause", "nodes": ["client-1"]}
    assert bare(links(lease_exclusion, story)[1]) == [
        {"sort": "counted-late", "time_ns": 900 * MS, "sure": False, "nodes": ["client-1"]},
        {**struck, "time_ns": 200 * MS},
    ]
    assert bare(links(lease_exclusion, stolen())[1]) == [
        {"sort": "stolen", "time_ns": 1300 * MS, "sure": False, "nodes": ["client-1"]}
    ]
    assert bare(links(lease_exclusion, tried("fail"))[1]) == [
        {"sort": "extend-failed", "time_ns": 400 * MS, "sure": False, "nodes": ["client-1"]}
    ]
    story = Story()
    granted_by(story, 1, "h1", 100, 1100, ["redis-1", "redis-2"])
    granted_by(story, 2, "h2", 600, 1600, ["redis-2", "redis-3"])
    assert bare(links(lease_exclusion, story)[1]) == [
        {"sort": "granted-both", "time_ns": 600 * MS, "sure": True, "nodes": ["redis-2"]},
        {"sort": "none", "time_ns": 600 * MS, "sure": False},
    ]


def tried(type, at=400, kind="no-quorum"):
    story = Story()
    story.grant(1, "h1", at=0, until=1000)
    if at != 400:
        story.extend(1, "h1", at=400, until=None, type="fail", kind="no-quorum")
    story.extend(1, "h1", at=at, until=2000, type=type, kind=kind)
    story.grant(2, "h2", at=600, until=1600)
    return story


def test_an_extend_that_was_refused_as_not_held_is_the_first_witness_of_a_loss_not_its_cause():
    sorts, found, _ = links(lease_exclusion, tried("fail", kind="not-held"))
    assert sorts == ["none"]
    assert found[0]["what"].endswith("; it was gone by 0.400 s, when an extend was refused")


def test_of_extends_before_one_that_was_refused_as_not_held_the_last_may_be_the_cause():
    story = tried("fail", at=500, kind="not-held")
    sorts, found, _ = links(lease_exclusion, story)
    assert sorts == ["extend-failed"]
    assert found[0]["time_ns"] == 400 * MS
    story = tried("fail", kind="not-held")
    story.extend(1, "h1", at=500, until=None, type="fail", kind="no-quorum")
    assert links(lease_exclusion, story)[0] == ["none"]


def test_an_extend_that_reached_no_server_frees_nothing():
    assert links(lease_exclusion, tried("fail", kind="unreachable"))[0] == ["none"]


def test_an_extend_that_failed_may_have_freed_the_lock():
    _, found, summary = links(lease_exclusion, tried("fail"))
    assert found[0]["what"].endswith("client-1 (process 1) asked for it at 0.400 s")
    assert summary.endswith("(likely freed by its own failed extend).")


@pytest.mark.parametrize(("at", "named"), [(500, 500), (600, 600), (700, 400)])
def test_of_several_extends_the_last_one_before_the_second_grant_is_named(at, named):
    sorts, found, _ = links(lease_exclusion, tried("fail", at))
    assert sorts == ["extend-failed"]
    assert found[0]["time_ns"] == named * MS


def test_an_extend_that_was_answered_ok_frees_nothing():
    assert links(lease_exclusion, tried("ok"))[0] == ["none"]


def test_of_several_late_releases_the_last_one_is_named():
    story = Story()
    story.grant(1, "h1", at=0, until=100)
    story.grant(4, "h4", at=200, until=1000)
    story.grant(2, "h2", at=1100, until=2100)
    story.release(1, "h1", at=1200)
    story.release(4, "h4", at=1400)
    story.grant(3, "h3", at=1400, until=2400)
    sorts, found, _ = links(lease_exclusion, story)
    assert sorts == ["stolen"]
    assert found[0]["nodes"] == ["client-4"]


def test_a_release_of_a_hold_whose_lease_ran_frees_only_that():
    story = Story()
    story.grant(1, "h1", at=0, until=1000)
    story.grant(2, "h2", at=100, until=1100)
    story.release(1, "h1", at=200)
    story.grant(3, "h3", at=300, until=1300)
    found = lease_exclusion(story.history(), TEST).evidence[1]["cause"]
    assert [link["sort"] for link in found] == ["none"]


def test_a_holder_without_a_matching_fault_has_no_cause():
    story = overlapping()
    story.fault("pause", 500, 1900, ["client-1"])
    history = story.history()
    nameless = History([replace(op, node=None) for op in history.ops])
    found = mutual_exclusion(nameless, TEST).evidence[0]["cause"]
    assert [link["sort"] for link in found] == ["lease-over", "kept-on"]
    assert "nodes" not in found[1]


def test_late_releases_near_a_grant_are_found_as_by_a_look_at_all():
    random = Random(7)
    for _ in range(300):
        found = [
            SimpleNamespace(
                sent=SimpleNamespace(time=sent),
                answered=random.choice([None, SimpleNamespace(time=sent + random.randint(0, 6))]),
            )
            for sent in (random.randint(0, 20) for _ in range(random.randint(0, 6)))
        ]
        since = random.randint(0, 20)
        until = since + random.randint(0, 6)
        near = [
            one
            for one in sorted(found, key=lambda one: one.sent.time)
            if one.sent.time <= until and (one.answered is None or one.answered.time >= since)
        ]
        assert list(_Late(found).latest(since, until)) == near[::-1]
