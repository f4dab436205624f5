"""The lanes of servers show which hold each had granted, and when it had granted two."""

from __future__ import annotations

from fencepost.report.figures.sampling import drawn
from fencepost.report.figures.timeline import timeline
from tests.histories import MS, Story

TEST = {"servers": ["redis-1", "redis-2", "redis-3"], "clients": ["client-1", "client-2"]}


def grant(story, process, hold, at, until, servers, lock="orders", shared=False):
    asked = {"lock": lock, "ttl": 1000 * MS, "mode": "shared" if shared else "exclusive"}
    answer = {"hold": hold, "token": None, "deadline": until * MS, "granted_by": servers}
    story.call(process, "acquire", at, at, asked, answer)


def picture(story):
    tables = timeline(drawn(story.history(), TEST), TEST)
    lanes = [row[0] for row in tables["lanes"]["rows"]]
    holds = [row[2] for row in tables["holds"]["rows"]]
    votes = [(lanes[lane], holds[hold], *span) for lane, hold, *span in tables["votes"]["rows"]]
    return lanes, votes, [(lanes[lane], *span) for lane, *span in tables["twice"]["rows"]]


def test_each_server_that_granted_has_a_lane_with_its_grants_until_their_leases_or_releases_end():
    story = Story()
    grant(story, 1, "h1", 0, 1000, ["redis-1", "redis-2"])
    story.release(1, "h1", at=300)
    grant(story, 2, "h2", 400, 1400, ["redis-2", "redis-3"])
    story.write(2, 2000, "a", 0, hold="h2")
    lanes, votes, twice = picture(story)
    assert lanes == ["client-1", "client-2", "redis-1", "redis-2", "redis-3"]
    assert sorted(votes) == [
        ("redis-1", "h1", 0, 300_000),
        ("redis-2", "h1", 0, 300_000),
        ("redis-2", "h2", 400_000, 1_400_000),
        ("redis-3", "h2", 400_000, 1_400_000),
    ]
    assert twice == []


def test_a_server_that_had_granted_two_is_shown_for_as_long_as_both_were_on():
    story = Story()
    grant(story, 1, "h1", 0, 1000, ["redis-1", "redis-2"])
    grant(story, 2, "h2", 600, 1600, ["redis-2", "redis-3"])
    grant(story, 3, "h3", 700, 1700, ["redis-1"], lock="invoices")
    assert picture(story)[2] == [("redis-2", 600_000, 1_000_000)]


def test_three_at_once_are_shown_each_against_the_one_that_lasts_longest():
    story = Story()
    grant(story, 1, "h1", 0, 900, ["redis-1"])
    grant(story, 2, "h2", 100, 300, ["redis-1"])
    grant(story, 3, "h3", 500, 1500, ["redis-1"])
    assert picture(story)[2] == [("redis-1", 100_000, 300_000), ("redis-1", 500_000, 900_000)]


def test_a_client_that_does_not_name_the_granting_servers_gives_no_server_a_lane():
    story = Story()
    story.grant(1, "h1", at=0, until=1000)
    assert picture(story) == (["client-1", "client-2"], [], [])


def test_shared_holds_exclude_only_exclusive_ones():
    story = Story()
    grant(story, 1, "h1", 0, 1000, ["redis-1"], shared=True)
    grant(story, 2, "h2", 100, 1100, ["redis-1"], shared=True)
    assert picture(story)[2] == []
    grant(story, 3, "h3", 900, 1050, ["redis-1"])
    grant(story, 4, "h4", 1040, 1200, ["redis-1"], shared=True)
    assert picture(story)[2] == [
        ("redis-1", 900_000, 1_050_000),
        ("redis-1", 1_040_000, 1_050_000),
    ]
