"""A run as data frames, to be taken elsewhere."""

from __future__ import annotations

import json

import pandas as pd
import pytest

from fencepost.report import frames
from fencepost.report.stored import ReportError
from report.matrices import cell, stored, violated
from report.matrices import run as ran


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


def test_a_matrix_is_a_row_a_cell_with_its_rates(tmp_path):
    content = stored(cell(ran(1000)), cell(violated("data", 5, holds=100), fault="kill"))
    (tmp_path / "matrix.json").write_text(json.dumps(content))
    frame = frames.cells(tmp_path).set_index("fault")
    assert list(frame["state"]) == ["kept", "damaged"]
    assert frame.loc["kill", "data_per_1000"] == 50
    assert frame["availability"].tolist() == pytest.approx([1.0, 0.1])
    with pytest.raises(ReportError, match="name the folder of a matrix"):
        frames.cells(tmp_path / "nowhere")
