"""A log of any length keeps its oldest and newest lines, and reports the gap."""

from __future__ import annotations

import pytest

from fencepost.harness.boundedlog import BoundedLog, gap

pytestmark = pytest.mark.slow

LIMIT = 10_000


@pytest.fixture
def path(tmp_path):
    return tmp_path / "harness.log"


def line(number):
    return f"{number:06d} running\n"


def written(path, count):
    log = BoundedLog(path, LIMIT)
    for number in range(count):
        log.write(line(number))
        assert path.stat().st_size <= LIMIT
    log.close()
    return path.read_text().splitlines(keepends=True)


def test_a_short_log_is_whole(path):
    assert written(path, 600) == [line(number) for number in range(600)]


@pytest.mark.parametrize("count", [800, 5000, 50_001])
def test_of_a_long_one_both_ends_stay_and_the_gap_is_counted(path, count):
    rows = written(path, count)
    (place,) = [number for number, row in enumerate(rows) if row.startswith("...")]
    last = len(rows) - place - 1
    assert rows[:place] == [line(number) for number in range(place)]
    assert rows[place + 1 :] == [line(number) for number in range(count - last, count)]
    assert rows[place] == gap(len(line(0)) * (count - place - last))
    assert place * len(line(0)) > LIMIT / 5
    assert last * len(line(0)) > LIMIT / 5
