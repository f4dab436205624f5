"""The figures of electors in a cell: shares and medians with their intervals, and their words."""

from __future__ import annotations

import pytest

from fencepost.report.words import leaders
from fencepost.report.words.cells import summed
from tests.report.matrices import cell, led, run


def cell_of(*figures):
    return summed(cell(*(run(30, leaders=one) for one in figures)))["leaders"]


def test_a_cell_of_a_lock_has_no_figures_of_leaders():
    found = summed(cell(run()))
    assert found["leaders"] is None and "leader" not in found["words"]
    assert leaders.plain(None) == {}


def test_the_share_of_changes_with_two_at_work_has_the_exact_interval():
    # 15 of 148: Newcombe 1998, table I.
    found = cell_of(led(reigns=101, overlaps=10), led(reigns=49, overlaps=5))
    share = found["overlaps"]
    assert (share["count"], share["of"], share["at_most"]) == (15, 148, None)
    assert (share["low"], share["high"]) == pytest.approx((57.8, 161.7), abs=0.05)


def test_the_longest_and_the_total_overlap_are_of_the_runs_with_the_interval_of_a_median():
    few = cell_of(led(overlap_longest_s=1.0), led(overlap_longest_s=3.0))["overlap_longest_s"]
    assert few == {"count": 2, "median": 2.0, "low": None, "high": None, "longest": 3.0}
    runs = (led(overlap_longest_s=float(n), overlap_total_s=2.0 * n) for n in range(1, 7))
    many = cell_of(*runs)
    one = many["overlap_longest_s"]
    assert (one["median"], one["low"], one["high"], one["longest"]) == (3.5, 1.0, 6.0, 6.0)
    assert many["overlap_total_s"]["longest"] == 12.0


def test_take_overs_are_pooled_by_cause():
    found = cell_of(
        led(took_s={"kill": [3.0], "resign": [0.1, 0.2]}),
        led(took_s={"resign": [0.3, 0.4, 0.5, 0.9]}),
    )
    assert list(found["take_over_s"]) == ["resign", "kill"]
    assert found["take_over_s"]["resign"] == {
        "count": 6, "median": 0.35, "low": 0.1, "high": 0.9, "longest": 0.9,
    }  # fmt: skip
    assert found["take_over_s"]["kill"]["count"] == 1


def test_counts_are_added_and_the_clocks_error_is_the_largest():
    found = cell_of(
        led(changes_without_cause=1, beats_after_stopped=4, clock_error_s=0.001),
        led(changes_without_cause=2, clock_error_s=0.003),
    )
    assert found["changes_without_cause"] == 3 and found["beats_after_stopped"] == 4
    assert found["clock_error_s"] == 0.003


@pytest.mark.parametrize(
    ("figures", "words"),
    [
        (led(reigns=1), "The leader never changed."),
        (led(reigns=0), "The leader never changed."),
        (
            led(reigns=21),
            "No two leaders worked at once in 20 changes of leader (95 %: at most 15 %, by the "
            "rule of three).",
        ),
        (
            led(reigns=21, overlaps=3, overlap_longest_s=1.234),
            "Two leaders worked at once after 3 of 20 changes of leader (3.2 % to 38 %), for at "
            "most 1.23 s.",
        ),
    ],
)
def test_a_cell_says_in_a_sentence_whether_two_worked_at_once(figures, words):
    assert summed(cell(run(30, leaders=figures)))["words"].endswith(f" {words}")


def test_a_crashed_run_has_no_figures():
    found = summed(cell(run(leaders=led(overlaps=1)), {"seed": 2, "crashed": "it died"}))
    assert found["leaders"]["overlaps"]["count"] == 1


def test_a_row_of_a_table_has_every_figure_as_a_plain_value():
    row = leaders.plain(cell_of(led(overlaps=1, overlap_longest_s=2.5, took_s={"cut": [1.5]})))
    assert row["leader_overlaps_count"] == 1 and row["leader_overlap_longest_s_longest"] == 2.5
    assert row["take_over_cut_s_median"] == 1.5 and row["take_over_no_cause_s_median"] is None
    assert all(value is None or isinstance(value, int | float) for value in row.values())
