"""Checkpoints of a search are few, and one is close to every place that it may return to."""

from __future__ import annotations

from types import SimpleNamespace

from fencepost.checker.lincheck.linearize import CHECKPOINT, _thin


def numbers(latest):
    """Return which of the checkpoints 0 to `latest` remain, if each is thinned on arrival."""
    places = []
    for number in range(latest + 1):
        places.append(SimpleNamespace(at=number * CHECKPOINT))
        _thin(places)
    return [place.at // CHECKPOINT for place in places]


def test_the_latest_are_all_kept_and_of_older_ones_every_second_fourth_and_eighth():
    assert numbers(8) == list(range(9))
    assert numbers(47) == [0, 8, 16, 20, 24, 28, 32, 34, 36, 38, 40, 41, 42, 43, 44, 45, 46, 47]


def test_a_long_history_keeps_few_checkpoints_with_one_near_each_place():
    kept = numbers(3000)
    assert kept[0] == 0
    assert len(kept) < 60
    for back in range(1, 3001):
        nearest = max(number for number in kept if number <= 3000 - back)
        assert 3000 - back - nearest < max(back // 2, 1)
