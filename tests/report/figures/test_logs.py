"""Log lines of servers around a violation are shown by the time of the run."""

from __future__ import annotations

import pytest

from fencepost.report.figures.logs import LINES, LONGEST, excerpts, moments, unix_s, windows

S = 1_000_000_000
BEGAN = 1_795_477_932.0  # 2026-11-23T23:52:12Z
TEST = {"began_unix_s": BEGAN}


@pytest.mark.parametrize(
    ("line", "after_s"),
    [
        ("39:M 23 Nov 2026 23:52:13.375 * Ready to accept connections", 1.375),
        ('{"level":"info","ts":"2026-11-23T23:52:14.500001Z","msg":"x"}', 2.500001),
        ("2026-11-23 23:52:15.250 UTC [12] LOG:  checkpoint", 3.25),
        ("2026-11-24  1:52:16 0 [Note] InnoDB: End of log at LSN=44910", 7204.0),
        ("[542] 2026/11/23 23:52:16.237501 [INF] Server is ready", 4.237501),
        ("2026-11-24 00:52:16,001 [myid:1] - INFO", 3604.001),
        ('{"level":"info","ts":"2026-11-24T01:52:13.5+02:00"}', 1.5),
        ("ZooKeeper JMX enabled by default", None),
        ("39:M 99 Nov 2026 23:52:13.375 * no day", None),
        ("x" * 80 + " 2026-11-23T23:52:14Z", None),
    ],
)
def test_the_time_of_a_line_is_read_as_each_server_writes_it(line, after_s):
    found = unix_s(line)
    assert found is None if after_s is None else found == pytest.approx(BEGAN + after_s)


def server(folder, name, *lines):
    log = folder / "nodes" / name / "server.log"
    log.parent.mkdir(parents=True)
    log.write_text("\n".join(lines) + "\n")


def at(after_s, text="*"):
    return f"1:M 23 Nov 2026 23:52:{12 + after_s:06.3f} {text}"


def test_lines_near_a_moment_are_shown_in_order_of_time_with_their_servers(tmp_path):
    server(tmp_path, "redis-1", "starting", at(1, "early"), at(6.1, "second"), "a trace", at(30))
    server(tmp_path, "redis-2", at(5.9, "<b>first</b>"), at(20))
    (found,) = excerpts(tmp_path, TEST, [(6 * S, 6.2 * S)])
    shown = [(line.server, line.text.split()[-1]) for line in found.lines]
    assert shown == [("redis-2", "<b>first</b>"), ("redis-1", "second"), ("redis-1", "trace")]
    assert found.lines[0].time_ns / S == pytest.approx(5.9)
    assert found.more == 0


def test_of_too_many_lines_those_nearest_to_the_moment_stay_and_long_ones_are_cut(tmp_path):
    lines = [at(5 + number / 100, "y" * 1000) for number in range(200)]
    server(tmp_path, "redis-1", *lines)
    (found,) = excerpts(tmp_path, TEST, [(6 * S, 6 * S)])
    assert (len(found.lines), found.more) == (LINES, 200 - LINES)
    assert all(5.5 < line.time_ns / S < 6.5 for line in found.lines)
    assert {len(line.text) for line in found.lines} == {LONGEST + 1}


def test_a_run_that_does_not_say_when_it_began_shows_no_logs(tmp_path):
    server(tmp_path, "redis-1", at(6))
    assert excerpts(tmp_path, {}, [(6 * S, 6 * S)]) == []


def test_a_moment_includes_earlier_lines_and_two_that_overlap_are_one():
    piece = {"time_ns": 20 * S, "cause": [{"time_ns": 15 * S}, {"time_ns": 1 * S}, {}]}
    assert list(moments([piece, {"what": "no time"}])) == [(15 * S, 20 * S)]
    assert windows([(15 * S, 20 * S), (16 * S, 16 * S), (40 * S, 41 * S)]) == [
        (14 * S, 21 * S),
        (39 * S, 42 * S),
    ]
