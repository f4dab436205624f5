"""A run as data frames, for use in other tools."""

from __future__ import annotations

import json
import shutil
import sys

import pandas as pd
import pytest

from fencepost import load
from fencepost.checker.history.history import HistoryError
from fencepost.report import exports
from fencepost.report.exports import frames
from fencepost.report.stored import ReportError
from tests.report.matrices import cell, stored, violated
from tests.report.matrices import run as ran


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


def test_tokens_are_those_of_grants_and_of_writes_with_their_outcome(run):
    frame = frames.tokens(run)
    assert list(frame["time_s"]) == sorted(frame["time_s"])
    late = frame[frame["token"] == 2]
    assert list(late["what"]) == ["granted", "accepted"]
    assert list(late["lock"]) == ["orders", "orders"]
    assert list(late["process"]) == [0, 0]
    third = frame[frame["what"] == "accepted"].iloc[1]
    assert (third["token"], third["time_s"]) == (3, pytest.approx(2.21))


def test_a_refused_write_keeps_its_token_and_its_error(store, story):
    hold = story.acquire(0, 0)
    story.write(10, 0, hold, story.read(5, 0), refused=True)
    story.acquire(20, 1)
    frame = frames.tokens(frames.read(store(story))).set_index("what")
    assert frame.loc["refused", "token"] == 1
    assert frame.loc["refused", "error"] == "stale-token a higher one was seen"


def test_a_token_keeps_all_its_digits_next_to_holds_without_one(store, story):
    story.acquire(0, 0)
    story.acquire(20, 1)
    large = 2**62 + 1
    for op, token in zip(
        [one for one in story.ops if one.type == "ok"], (large, None), strict=True
    ):
        op.value["token"] = token
    run = frames.read(store(story))
    assert [one if one is not pd.NA else None for one in frames.holds(run)["token"]] == [
        large,
        None,
    ]
    assert list(frames.tokens(run)["token"]) == [large]


def test_a_run_without_ops_has_frames_with_their_columns(store, story):
    ops, holds, faults, tokens = frames.of(frames.read(store(story)))
    assert [len(frame) for frame in (ops, holds, faults, tokens)] == [0, 0, 0, 0]
    assert "f" in ops and "token" in holds and "proved" in faults and "what" in tokens


def test_a_long_run_has_the_rows_of_all_its_segments(store, calm, tmp_path):
    folder = store(calm)
    run = tmp_path / "long"
    for number in (1, 2):
        shutil.copytree(folder, run / "segments" / f"{number:04d}")
    shutil.copy(folder / "test.json", run)
    one, both = frames.of(frames.read(folder)), frames.all_of(run)
    for alone, twice in zip(one, both, strict=True):
        assert list(twice["segment"]) == [1] * len(alone) + [2] * len(alone)
        assert list(twice.columns) == ["segment", *alone.columns]


def test_a_history_that_cannot_be_read_is_refused_and_not_taken_for_an_empty_one(store, calm):
    folder = store(calm)
    (folder / "history.jsonl").write_text("[\n")
    with pytest.raises(HistoryError, match=r"history\.jsonl:1"):
        frames.all_of(folder)


def test_without_pandas_the_error_says_how_to_install_it(store, calm, monkeypatch):
    result = load(store(calm))
    monkeypatch.setitem(sys.modules, "pandas", None)
    monkeypatch.delitem(sys.modules, "fencepost.report.exports.frames")
    monkeypatch.delattr(exports, "frames")
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'fencepost\[frames\]'"):
        result.to_pandas()


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
