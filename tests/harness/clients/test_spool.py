"""A spool is bounded: if its reader is slow, the oldest and newest output stays, with a gap."""

from __future__ import annotations

import json
import os
from random import Random

import pytest

from fencepost.workloads.client.spool import Spool


@pytest.fixture
def spool():
    made = Spool(limit=4000)
    yield made
    os.close(made.fd)


def line(number):
    return b'{"n":"%08d"}\n' % number


def write(spool, numbers):
    for number in numbers:
        os.write(spool.fd, line(number))
        spool.trim()


def drained(spool):
    found = b""
    while chunk := spool.read():
        spool.done()
        found += chunk
    return found


def memory(spool):
    return 512 * os.stat(spool.fd).st_blocks


def test_output_that_is_read_in_time_is_passed_on_unchanged(spool):
    write(spool, range(200))
    assert drained(spool) == b"".join(map(line, range(200)))
    write(spool, range(200))
    assert drained(spool) == b"".join(map(line, range(200)))
    assert spool.read() == b""


def test_of_more_than_the_limit_the_oldest_and_the_newest_lines_stay_and_the_gap_is_counted(spool):
    count = 10_000
    write(spool, range(count))
    said = drained(spool)
    rows = said.splitlines(keepends=True)
    (gap,) = [place for place, row in enumerate(rows) if b"cut" in row]
    assert rows[:gap] == [line(number) for number in range(gap)]
    last = len(rows) - gap - 1
    assert rows[gap + 1 :] == [line(number) for number in range(count - last, count)]
    assert gap > 100 and last > 60
    cut = json.loads(rows[gap])
    assert cut == {"control": "cut", "bytes": len(line(0)) * (count - gap - last)}


def test_omitted_output_takes_no_memory():
    spool = Spool(limit=1 << 20)
    for number in range(2000):
        os.write(spool.fd, line(number) * 1000)
        spool.trim()
    assert memory(spool) < 2 << 20
    os.close(spool.fd)


def test_a_slow_reader_misses_nothing_without_a_reported_gap(spool):
    """Check that the passed bytes and the bytes reported missing add up to all written bytes."""
    random, written, out = Random(3), 0, b""
    for _ in range(300):
        write(spool, range(written, written + random.randrange(120)))
        written = os.fstat(spool.fd).st_size // len(line(0))
        for _ in range(random.randrange(4)):
            if chunk := spool.read():
                # More output arrives while a chunk is passed on.
                write(spool, range(written, written + random.randrange(120)))
                written = os.fstat(spool.fd).st_size // len(line(0))
                spool.done()
                out += chunk
    out += drained(spool)
    rows = [json.loads(row) for row in out.splitlines()]
    missing = sum(row.get("bytes", 0) for row in rows)
    numbers = [row["n"] for row in rows if "n" in row]
    assert missing > 0
    assert len(numbers) * len(line(0)) + missing == written * len(line(0))
    assert numbers == sorted(numbers)


def test_a_line_without_an_end_is_cut_too_and_its_gap_is_on_its_own_line(spool):
    for _ in range(100):
        os.write(spool.fd, b"x" * 1000)
        spool.trim()
    first, gap, rest = drained(spool).split(b"\n")
    assert set(first) == set(rest) == {ord("x")}
    assert len(first) + len(rest) + json.loads(gap)["bytes"] == 100_000
