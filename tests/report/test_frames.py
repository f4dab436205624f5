"""A run as data frames, to be taken elsewhere."""

from __future__ import annotations

import pandas as pd
import pytest

from fencepost.report import frames
from fencepost.report.stored import ReportError


@pytest.fixture
def run(store, clash):
    return frames.read(store(clash))


def test_every_op_is_a_row_and_survives_csv(run, tmp_path):
    frame = frames.ops(run)
    assert len(frame) == len(run.history)
    frame.to_csv(tmp_path / "ops.csv")
    again = pd.read_csv(tmp_path / "ops.csv")
    assert list(again["f"]) == [op.f for op in run.history]
    assert again["value.lock"].dropna().unique() == ["orders"]


def test_holds_are_those_of_the_checkers(run):
    frame = frames.holds(run).set_index("hold")
    assert list(frame.index) == ["h1", "h2", "h3", "h4", "h5", "h6"]
    paused = frame.loc["h2"]
    assert (paused["start_s"], paused["believed_end_s"]) == (1.005, 2.0)
    assert (paused["end_s"], paused["ended_by"]) == (2.52, "release")


def test_acquires_have_their_latency(run):
    assert list(frames.acquires(run)["latency_ms"]) == pytest.approx([5.0] * 6)


def test_a_folder_without_a_run_is_refused(tmp_path):
    with pytest.raises(ReportError):
        frames.read(tmp_path)
