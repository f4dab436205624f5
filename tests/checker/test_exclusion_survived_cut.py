"""An extend that was answered ok shows that a hold survived the faults that had ended before."""

from __future__ import annotations

import pytest

from tests.checker.exclusion_stories import verdicts

TEST = {"servers": ["s1"], "lock": {"ends_with": "connection"}}


def cut(story, start, end, healed=True):
    links = {"links": [["client-0", "s1"]]}
    story.fault("partition", start, end, ["client-0", "s1"], healed=healed, arguments=links)


@pytest.mark.parametrize(("sent", "lease"), [(300, True), (301, False)])
def test_a_hold_survived_a_cut_that_was_over_before_it_was_extended(story, sent, lease):
    story.grant(0, "a", at=0, until=1000)
    cut(story, 200, 300)
    story.extend(0, "a", at=sent, until=1300)
    story.grant(1, "b", at=600, until=1600)
    story.release(1, "b", at=700)
    story.release(0, "a", at=800)
    assert verdicts(story, **TEST) == (lease, False)


@pytest.mark.parametrize(("end", "healed"), [(500, True), (300, False), (None, False)])
def test_it_may_end_by_one_that_was_not_certainly_over(story, end, healed):
    story.grant(0, "a", at=0, until=1000)
    cut(story, 200, end, healed)
    story.extend(0, "a", at=400, until=1300)
    story.grant(1, "b", at=600, until=1600)
    assert verdicts(story, **TEST)[0] is True


@pytest.mark.parametrize("type", ["fail", "info"])
def test_an_extend_shows_that_only_by_an_ok(story, type):
    story.grant(0, "a", at=0, until=1000)
    cut(story, 200, 300)
    story.grant(1, "b", at=350, until=1350)
    story.extend(0, "a", at=400, until=None, type=type, kind="no-quorum")
    assert verdicts(story, **TEST)[0] is True


def test_it_may_end_by_a_later_cut(story):
    story.grant(0, "a", at=0, until=1000)
    cut(story, 200, 300)
    story.extend(0, "a", at=400, until=1300)
    cut(story, 500, 550)
    story.grant(1, "b", at=600, until=1600)
    assert verdicts(story, **TEST)[0] is True
