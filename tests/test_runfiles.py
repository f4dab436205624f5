"""test.json and results.json are read as they were written, or refused with the field's name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fencepost import plainfile, runfiles

RECORDED = sorted((Path(__file__).parent / "recorded").glob("*/test.json"))


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.parent.name)
def test_files_written_by_fencepost_are_read_unchanged(path):
    assert runfiles.test(path) == json.loads(path.read_text())


def test_a_run_is_described_by_what_was_asked_and_what_was_learnt(tmp_path):
    asked = {"name": "x", "time_s": 60.0, "lock": {"name": "redis", "token": "unknown"}}
    (tmp_path / "test.json").write_text(json.dumps(asked))
    assert runfiles.description(tmp_path) == asked
    learnt = {"time_s": 1.5, "lock": {"token": False}, "versions": {"redis": "7"}}
    (tmp_path / "run.json").write_text(json.dumps(learnt))
    assert runfiles.description(tmp_path) == {
        "name": "x",
        "time_s": 1.5,
        "lock": {"name": "redis", "token": False},
        "versions": {"redis": "7"},
    }
    (tmp_path / "test.json").unlink()
    assert runfiles.description(tmp_path) == learnt


def test_a_folder_that_describes_no_run_is_an_error(tmp_path):
    with pytest.raises(OSError):
        runfiles.description(tmp_path)


@pytest.mark.parametrize("name", ["test.json", "run.json"])
def test_what_was_learnt_is_held_to_the_same_types(tmp_path, name):
    (tmp_path / "test.json").write_text("{}")
    (tmp_path / name).write_text('{"ready_s": "soon"}')
    with pytest.raises(ValueError, match=r"^ready_s: "):
        runfiles.description(tmp_path)


def test_unknown_fields_are_kept(tmp_path):
    path = tmp_path / "test.json"
    path.write_text('{"name": "x", "mine": {"a": [1]}}')
    assert runfiles.test(path) == {"name": "x", "mine": {"a": [1]}}


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ({"name": 3}, "^name: Expected `str`"),
        ({"name": None}, "^name: "),
        ({"lock": "redis"}, "^lock: Expected `object"),
        ({"lock": {"options": []}}, "^lock.options: "),
        ({"servers": "redis-1"}, "^servers: "),
        ({"clients": [1]}, r"^clients\[0\]: "),
        ({"checkers": [[]]}, "^checkers"),
        ({"time_s": "5"}, "^time_s: "),
        ({"time_s": -1}, "^time_s: "),
        ({"ttl_ms": 1e300}, "^ttl_ms: "),
        ({"seed": 2**64}, "^seed: "),
        ({"clocks": {"a": {"bound_ns": -1}}}, "^clocks"),
        ({"failed_release": "maybe"}, "^failed_release: "),
        ({"scenario": {"steps": [None]}}, "^scenario.steps"),
        ({"schedule": [{"targets": "all"}]}, "^schedule"),
    ],
)
def test_a_test_with_a_field_of_another_type_is_refused(tmp_path, row, why):
    path = tmp_path / "test.json"
    path.write_text(json.dumps(row))
    with pytest.raises(ValueError, match=why):
        runfiles.test(path)


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ({"checkers": {"store": 1}}, "^checkers"),
        ({"checkers": {"store": {"summary": 1}}}, "summary: "),
        ({"checkers": {"store": {"evidence": [1]}}}, "evidence"),
        ({"checkers": {"store": {"summary": "x", "valid": "ok"}}}, "valid: Invalid enum value"),
        ({"checkers": {}, "valid": 1}, "^valid: "),
        ({"stats": {"ops": "many"}}, "^stats.ops: "),
        ({"first_violation": {}}, "^first_violation: "),
        ({"notes": ["x", 1]}, "^notes"),
        ({"run_notes": "x"}, "^run_notes: "),
    ],
)
def test_results_with_a_field_of_another_type_are_refused(tmp_path, row, why):
    path = tmp_path / "results.json"
    path.write_text(json.dumps(row))
    with pytest.raises(ValueError, match=why):
        runfiles.results(path)


@pytest.mark.parametrize(("text", "why"), [("[]", "not a JSON object"), ("{", "Expecting")])
def test_a_value_that_is_not_an_object_is_refused(tmp_path, text, why):
    path = tmp_path / "test.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=why):
        runfiles.test(path)


def test_a_file_that_is_too_long_is_not_read_into_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(plainfile, "MOST", 1 << 20)
    path = tmp_path / "test.json"
    path.write_bytes(b" " * (1 << 20) + b"{}")
    with pytest.raises(ValueError, match="larger than 1 MB"):
        runfiles.test(path)
