"""The clocks of other kernels: measured, bounded, and measured again."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from fencepost.harness.cluster.timing import BOOT_ID, SAME, Clock, drifted, measure

MS = 1_000_000
OFFSET_NS = -123_456_789_000


class Node:
    """A node on a kernel of its own, with a clock offset and slow round trips.

    `ways` are the times of each round trip there and back, in ns.
    """

    def __init__(self, ways, boot_id=b"theirs\n"):
        self._ways = iter(ways)
        self._boot_id = boot_id
        self.now_ns = 5_000_000_000
        self.trips = 0

    def get(self, path):
        assert path == BOOT_ID
        return self._boot_id

    def run(self, argv):
        assert argv == ["fencepost-node", "clocks", "node", "monotonic"]
        self.trips += 1
        there, back = next(self._ways)
        self.now_ns += there
        shown = self.now_ns + OFFSET_NS
        self.now_ns += back
        return SimpleNamespace(out=json.dumps({"ns": shown}))


@pytest.fixture
def ours(tmp_path):
    path = tmp_path / "boot_id"
    path.write_text("ours\n")
    return path


def clock_of(node, ours):
    return measure(node, lambda: node.now_ns, ours)


def test_a_node_on_the_harness_kernel_is_not_measured(ours):
    node = Node([], boot_id=b"ours\n")
    assert clock_of(node, ours) == SAME
    assert node.trips == 0


def test_the_shortest_round_trip_says_how_far_off_a_clock_is(ours):
    ways = [(9 * MS, 30 * MS)] * 10 + [(MS // 10, MS // 5)] + [(40 * MS, MS)] * 9
    node = Node(ways)
    clock = clock_of(node, ours)
    assert node.trips == 20
    assert clock.error_ns == pytest.approx(MS * 0.15, abs=2)
    assert abs(clock.offset_ns - OFFSET_NS) <= clock.error_ns


@pytest.mark.parametrize("way", [(0, 2 * MS), (2 * MS, 0), (MS, MS), (0, 0)])
def test_the_true_offset_is_within_the_bound_for_any_asymmetry_of_a_round_trip(ours, way):
    clock = clock_of(Node([way] * 20), ours)
    assert abs(clock.offset_ns - OFFSET_NS) <= clock.error_ns


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        (Clock(1000, 500), Clock(1900, 500), None),
        (Clock(0, 5 * MS), Clock(0, 5 * MS), None),
        (Clock(0, 6 * MS), Clock(0, MS), "are uncertain by 6.0 ms"),
        (Clock(0, MS), Clock(0, 7 * MS), "are uncertain by 7.0 ms"),
        (Clock(0, MS), Clock(3 * MS, MS), "drifted by 3.000 ms"),
        (Clock(0, MS), Clock(-3 * MS, MS), "drifted by 3.000 ms"),
    ],
)
def test_a_clock_that_moved_or_has_a_wide_bound_is_noted(before, after, words):
    said = drifted("client-1", before, after)
    assert said is None if words is None else words in said and "client-1" in said
