"""Stored runs, of this version and of older ones, are judged to the same results."""

from __future__ import annotations

import gc
import gzip
import json
from pathlib import Path

import pytest

from fencepost import runfiles
from fencepost.harness.judge import judge as judging
from fencepost.harness.judge.judge import judge

RECORDED = Path(__file__).parents[2] / "recorded"
RUNS = sorted(path.parent for path in RECORDED.glob("*/expected.json"))
LEARNT = ("versions", "started", "clocks", "began_unix_s", "ready_s", "plays", "schedule")


@pytest.fixture(params=RUNS, ids=lambda run: run.name)
def recorded(request, tmp_path) -> Path:
    """A run of an older version: test.json has all, and there is no run.json."""
    folder = tmp_path / "run"
    folder.mkdir()
    packed = (request.param / "history.jsonl.gz").read_bytes()
    (folder / "history.jsonl").write_bytes(gzip.decompress(packed))
    (folder / "test.json").write_bytes((request.param / "test.json").read_bytes())
    return folder


def test_an_older_run_is_judged_as_if_it_had_a_run_json_and_stays_as_it_is(recorded):
    before = (recorded / "test.json").read_bytes()
    results = judge(recorded, []).results
    assert (recorded / "test.json").read_bytes() == before
    assert not (recorded / "run.json").exists()

    test = json.loads(before)
    learnt = {name: test.pop(name) for name in LEARNT if name in test}
    (recorded / "test.json").write_text(json.dumps(test))
    (recorded / "run.json").write_text(json.dumps(learnt))
    assert judge(recorded, []).results == results


def row(process: int, type: str, f: str, time: int, **value: object) -> str:
    known = {"process": process, "type": type, "f": f, "time": time, "node": "n"}
    return json.dumps(known | {"value": value}) + "\n"


HISTORY = row(0, "invoke", "acquire", 1, lock="a") + row(0, "fail", "acquire", 2, lock="a")


def test_the_checkers_of_a_history_from_elsewhere_are_kept_in_run_json(tmp_path):
    (tmp_path / "history.jsonl").write_text(HISTORY)
    found = judge(tmp_path)
    assert not (tmp_path / "test.json").exists()
    learnt = runfiles.description(tmp_path)
    assert learnt["name"] == tmp_path.name
    assert "fencing" in learnt["not_checked"]
    assert learnt["checkers"] == [name for name in found.verdicts if name != "faults"]
    assert judge(tmp_path).results == found.results
    assert (tmp_path / "report.html").is_file()


@pytest.mark.parametrize(
    ("long", "own", "done"),
    [
        (3, 0, []),
        (2, 0, ["counted", "frozen", "unfrozen"]),
        (2, 7, ["counted"]),
    ],
)
def test_a_long_history_is_frozen_while_it_is_judged_unless_the_process_has_frozen_objects(
    tmp_path, monkeypatch, long, own, done
):
    calls = []
    monkeypatch.setattr(judging, "_LONG", long)
    monkeypatch.setattr(gc, "get_freeze_count", lambda: calls.append("counted") or own)
    monkeypatch.setattr(gc, "freeze", lambda: calls.append("frozen"))
    monkeypatch.setattr(gc, "unfreeze", lambda: calls.append("unfrozen"))
    (tmp_path / "history.jsonl").write_text(HISTORY)
    usual = gc.get_threshold()
    judge(tmp_path)
    assert calls == done
    assert (gc.isenabled(), gc.get_threshold()) == (True, usual)


def test_a_description_from_elsewhere_stays_as_it_is(tmp_path):
    (tmp_path / "history.jsonl").write_text(HISTORY)
    (tmp_path / "test.json").write_text('{"name": "mine"}')
    judge(tmp_path)
    assert (tmp_path / "test.json").read_text() == '{"name": "mine"}'
    assert set(json.loads((tmp_path / "run.json").read_text())) == {"checkers", "not_checked"}
