"""A server's log loses its middle, except for lines about a breakdown."""

from __future__ import annotations

import os

import pytest

from fencepost.node import serverlog
from fencepost.node.serverlog import shorten

pytestmark = pytest.mark.slow

HEAD, TAIL = 1 << 14, 1 << 16
LINES = 40_000  # of 7 bytes


@pytest.fixture
def path(tmp_path):
    return tmp_path / "redis.log"


def line(number):
    return f"{number:06d}\n"


def write(path, numbers, bad=()):
    """Append to the end of the file, as the server does after the truncation."""
    with path.open("a") as log:
        for number in numbers:
            log.write(line(number))
            if number in bad:
                log.write(f"panic: {number}\nwhy\n")


def cut(path, pattern="^panic: "):
    return shorten(path, HEAD, TAIL, pattern)


def ends(path, found):
    """Return the lines before and after the gap."""
    with path.open() as log:
        before = log.read(found["start"]).splitlines()
        log.seek(found["end"])
        return before, log.read().splitlines()


def kept(path):
    return path.with_name("redis.log.kept").read_text().splitlines()


def test_a_short_log_is_whole(path):
    write(path, range(10_000))
    assert cut(path) is None
    assert path.read_text() == "".join(map(line, range(10_000)))


def test_of_a_long_one_both_ends_stay_in_whole_lines(path):
    write(path, range(LINES))
    before, after = ends(path, cut(path))
    assert before == [f"{number:06d}" for number in range(len(before))]
    assert after == [f"{number:06d}" for number in range(LINES - len(after), LINES)]
    assert HEAD <= 7 * len(before) < HEAD + 14
    assert TAIL - 14 < 7 * len(after) <= TAIL


def test_omitted_lines_take_no_room(path):
    write(path, range(10 * LINES))
    cut(path)
    assert path.stat().st_size == 70 * LINES
    assert path.stat().st_blocks * 512 < HEAD + TAIL + 4 * os.sysconf("SC_PAGE_SIZE")


def test_a_log_that_grows_all_the_time_stays_short(path):
    for start in range(0, 20 * LINES, LINES):
        write(path, range(start, start + LINES))
        found = cut(path)
    before, after = ends(path, found)
    assert before[0] == "000000"
    assert after[-1] == f"{20 * LINES - 1:06d}"
    assert path.stat().st_blocks * 512 < HEAD + 2 * TAIL + 7 * LINES


def test_a_breakdown_in_the_omitted_part_is_kept_with_the_following_lines(path):
    bad = (20_000, 60_000)
    for start in range(0, 4 * LINES, LINES):
        write(path, range(start, start + LINES), bad)
        found = cut(path)
    assert kept(path) == [
        words
        for number in bad
        for words in (f"panic: {number}", "why", *(f"{number + n:06d}" for n in range(1, 5)))
    ]
    assert found["unkept"] == 0


def test_kept_lines_are_bounded_and_the_rest_is_counted(path, monkeypatch):
    monkeypatch.setattr(serverlog, "KEPT_MOST", 1000)
    write(path, range(LINES), bad=range(5000, 6000))
    found = cut(path)
    assert path.with_name("redis.log.kept").stat().st_size <= 1000
    assert len(kept(path)) + found["unkept"] >= 2000
    write(path, range(LINES, 2 * LINES))
    assert cut(path)["unkept"] == found["unkept"]


def test_a_log_without_a_line_end_is_shortened_too(path):
    path.write_bytes(b"x" * (1 << 20))
    found = cut(path)
    assert (found["start"], found["end"]) == (HEAD, (1 << 20) - TAIL)


def test_a_restarted_log_has_nothing_of_before(path):
    """All figures are about the new log: its lines, its gap, its kept lines."""
    write(path, range(LINES), bad={9_000})
    cut(path)
    serverlog.begin(path)
    new = path.stat().st_size
    write(path, range(LINES, LINES + 10_000))
    found = cut(path)
    assert found == {"since": new, "start": new, "end": new, "unkept": 0}
    write(path, range(LINES + 10_000, 2 * LINES), bad={60_000})
    found = cut(path)
    with path.open() as log:
        log.seek(found["since"])
        assert log.readline() == line(LINES)
        assert HEAD <= found["start"] - found["since"] < 2 * HEAD
    assert ends(path, found)[1][-1] == f"{2 * LINES - 1:06d}"
    assert kept(path)[0] == "panic: 60000"
    assert path.stat().st_blocks * 512 < HEAD + 3 * TAIL


def test_a_log_that_does_not_exist_yet_starts_by_itself(path):
    serverlog.begin(path)
    assert not path.exists()


def test_a_missing_log_is_an_error(path):
    with pytest.raises(OSError, match="No such file"):
        cut(path)


def test_an_unknown_verb_is_an_error():
    with pytest.raises(OSError, match="unknown verb log forget; use begin or shorten"):
        serverlog.command(["forget", "x"])
