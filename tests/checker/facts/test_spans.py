"""Finding spans by time gives the same result as a look at each span."""

from __future__ import annotations

from math import inf
from random import Random

from fencepost.checker.facts.spans import Spans


def test_spans_found_by_time_equal_those_found_by_a_full_scan():
    for seed in range(300):
        random = Random(seed)
        rows = []
        for name in range(random.randrange(12)):
            begin = random.randrange(20)
            end = None if random.random() < 0.2 else begin + random.randrange(8)
            rows.append((begin, end, name))
        spans = Spans(rows)
        for _ in range(10):
            start = random.randrange(-2, 25)
            end = start + random.randrange(10)
            expected = [
                name
                for begin, over, name in sorted(rows, key=lambda row: row[0])
                if begin <= end and (over is None or over >= start)
            ]
            assert spans.touching(start, end) == expected
            assert spans.count(start, end) == len(expected)
            ends = [inf if rows[name][1] is None else rows[name][1] for name in expected]
            assert spans.until(start, end) == max(ends, default=-inf)
            for most in range(1, 5):
                assert spans.latest(start, end, most) == expected[-most:]


def test_of_spans_with_equal_starts_the_first_is_returned_first():
    spans = Spans([(1, 9, "c"), (0, None, "a"), (1, 9, "b"), (1, None, "d")])
    assert spans.touching(1, 1) == ["a", "c", "b", "d"]
