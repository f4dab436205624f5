"""A folder of results is found by its path, its test, its time, and as the latest of its kind."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fencepost.harness.errors import BadArguments
from fencepost.harness.results import results
from fencepost.harness.results.finder import ANY, find, newest

MATRIX = {"schema": 1, "plan": {}, "cells": []}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("FENCEPOST_RESULTS", str(tmp_path / "results"))
    return tmp_path / "results"


def run(test: str) -> Path:
    made = results.create(test)
    results.write(made / "test.json", {"name": test})
    return made


def matrix() -> Path:
    made = results.create("matrix")
    (made / "matrix.json").write_text(json.dumps(MATRIX))
    return made


def test_a_run_is_found_by_its_path_its_test_its_time_and_as_the_latest(folder):
    old, new = run("redlock"), run("redlock")
    assert find(str(old)) == find(f"redlock/{old.name}") == find(old.name) == old.resolve()
    for name in ("redlock", "latest", "redlock/latest", str(folder), str(folder / "redlock")):
        assert find(name) == new.resolve()


def test_a_run_is_found_by_its_history():
    (made := run("redlock")).joinpath("history.jsonl").touch()
    assert find(str(made / "history.jsonl")) == made.resolve()


def test_a_folder_in_the_current_one_comes_before_the_results_folder(tmp_path, monkeypatch):
    run("redlock")
    monkeypatch.chdir(tmp_path)
    mine = tmp_path / "redlock"
    mine.mkdir()
    assert find("redlock") != mine.resolve()
    (mine / "history.jsonl").touch()
    assert find("redlock") == mine.resolve()


def test_latest_is_the_newest_of_the_kind_that_is_asked_for():
    first, table, second, newer = run("redlock"), matrix(), run("redis"), matrix()
    assert find("latest") == second.resolve()
    assert find("latest", "matrix") == newer.resolve()
    assert find("latest", ANY) == newer.resolve()
    assert find(table.name, "matrix") == find(f"matrix/{table.name}", "matrix") == table.resolve()
    assert find("redlock") == first.resolve()
    with pytest.raises(BadArguments, match="'matrix' is not a run"):
        find("matrix")
    with pytest.raises(BadArguments, match=r"'redis' is not a matrix .*; the newest here: matrix/"):
        find("redis", "matrix")


def test_the_latest_is_found_where_nobody_may_make_links(folder):
    old, new = run("redlock"), run("redlock")
    for link in (folder / "latest", folder / "redlock" / "latest"):
        link.unlink()
    assert find("latest") == find("redlock") == new.resolve() != old.resolve()


def test_an_unknown_name_is_an_error_that_names_the_newest():
    runs = [run("redlock") for _ in range(6)]
    with pytest.raises(BadArguments) as error:
        find("redlok")
    names = [f"redlock/{one.name}" for one in runs[:0:-1]]
    assert newest(5) == names
    assert str(error.value) == (
        "'redlok' is not a run (the path of a folder, or TEST, TEST/TIME, TIME or latest in "
        f"{results.root()}); the newest here: {', '.join(names)}"
    )


@pytest.mark.parametrize(
    ("kind", "noun"), [("run", "run"), ("sweep", "sweep"), ("night", "nightly run"), (ANY, "run")]
)
def test_an_empty_folder_says_that_it_is_empty(kind, noun):
    with pytest.raises(BadArguments, match=f"holds no {noun}$"):
        find("redlock", kind)
