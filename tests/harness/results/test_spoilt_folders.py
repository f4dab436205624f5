"""Folders that cannot be read, or not as a whole, are listed with the reason."""

from __future__ import annotations

import json
import os
import re

import pytest

from fencepost.harness.results import batch_index, results, run_index
from fencepost.report.exports import batches
from tests.harness.results.stored_runs import made, suite


def test_a_batch_with_a_corrupt_file_is_listed_with_the_reason(call):
    folder = suite(True)
    (folder / "suite.json").write_text('{"a": 1}')
    code, said = call("ls")
    assert (code, "cannot be read" in said) == (0, True)


@pytest.mark.parametrize("error", [TypeError, AttributeError, ZeroDivisionError, RuntimeError])
def test_a_programming_error_is_not_called_a_damaged_file(call, monkeypatch, error):
    def fails(*_):
        raise error("a defect")

    folder, of_run = suite(True), made("one", True)
    monkeypatch.setitem(batches.KINDS, "suite", fails)
    with pytest.raises(error):
        batch_index.read(folder)
    with pytest.raises(error):
        run_index.entry_of(folder, "suite")
    monkeypatch.setattr(results, "read_test", fails)
    with pytest.raises(error):
        run_index.entry_of(of_run, "run")


@pytest.mark.parametrize(
    ("content", "said"),
    [("{", "cannot be read"), ("[]", "got `array`"), ('{"seed": "x"}', r"at `\$.seed"),
     ('{"seed": 1, "entries": [{"key": "k", "marks": 7}]}', "marks"), ("7" * 5000, "cannot be")],
)  # fmt: skip
def test_a_damaged_nightly_run_is_listed_with_the_reason(call, content, said):
    folder = results.create("night")
    (folder / "night.json").write_text(content)
    assert re.search(said, run_index.entry_of(folder, "night").problem)
    assert call("ls")[0] == 0


def test_a_campaign_of_hunts_without_a_seed_s_number_is_listed_with_the_reason(call):
    folder = results.create("campaign")
    content = {"schema": 2, "kind": "campaign", "plan": {"lock": "l"}, "rows": [{"key": "x"}]}
    (folder / "campaign.json").write_text(json.dumps(content))
    assert "'x' is not a seed" in run_index.entry_of(folder, "campaign").problem


def spoil(folder, name, content):
    path = folder / name
    path.unlink(missing_ok=True)
    match content:
        case "pipe":
            os.mkfifo(path)
        case "device":
            path.symlink_to("/dev/zero")
        case "loop":
            path.symlink_to(path.name)
        case _:
            path.write_bytes(content)


SPOILT = [
    ("results.json", b'{"checkers": {}, "faults": ["x"]}'),
    ("results.json", b'{"checkers": {}, "stats": {"by_f": [1]}}'),
    ("results.json", b"{}"),
    ("matrix.json", b"[" * 5000),
    ("sweep.json", b'{"cells": [], "plan": {"x": "1"}}'),
    ("campaign.json", b'{"schema": 2, "kind": "nonsense", "plan": {}, "rows": []}'),
    ("campaign.json", b"[" * 5000),
    ("night.json", b"\xff"),
    *((name, sort) for name in ("test.json", "results.json", "history.jsonl", "campaign.json",
      "campaign.jsonl", "suite.json", "seeds.jsonl") for sort in ("pipe", "device", "loop")),
]  # fmt: skip


@pytest.mark.parametrize(("name", "content"), SPOILT)
def test_a_spoilt_folder_never_takes_the_list_away(call, tmp_path, name, content):
    good, bad = made("good", valid=True), made("bad", valid=False)
    spoil(bad, name, content)
    code, said = call("ls")
    assert code == 0
    assert good.name in said
    assert bad.name in said
    assert "Traceback" not in said
    assert call("site", str(tmp_path / "site"), "--docs", str(tmp_path))[0] == 0
    assert call("rm", "--older", "0.001s", "--yes")[0] == 0


@pytest.mark.parametrize("name", [b"\xff\xfe", b"a\x1b]0;x\x07", b"[bold]"])
def test_a_folder_of_any_name_is_listed(call, folder, name):
    made("good", valid=True).parent.rename(folder / os.fsdecode(name))
    code, said = call("ls")
    assert (code, "valid" in said) == (0, True)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_folder_of_another_user_is_listed_with_the_reason(call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FENCEPOST_RESULTS", "results")
    made("good", valid=True)
    made("hidden", valid=True).chmod(0o700)
    tmp_path.chmod(0o755)
    call("ls")  # which imports everything that the other user cannot read
    os.seteuid(65534)
    try:
        code, said = call("ls", "--json")
    finally:
        os.seteuid(0)
    assert code == 0
    assert "good/" in said
    assert "Permission denied" in said


def test_a_suite_that_names_no_path_lists_the_runs_that_it_can(call, tmp_path):
    made("good", valid=True)
    suite = made("suite")
    (suite / "suite.json").write_text(json.dumps([{"test": "a", "run": "a\0b"}]))
    assert list(run_index.named(run_index.entry_of(suite, "suite"))) == []
    assert call("site", str(tmp_path / "site"), "--docs", str(tmp_path))[0] == 0


def test_a_suite_that_cannot_be_used_is_no_baseline(call, tmp_path):
    (made("suite") / "suite.json").write_text('[{"test": "a"}]')
    code, said = call("nightly", "baseline", "suite", "--baseline", str(tmp_path / "b.json"))
    assert code == 254
    assert "cannot be used" in said
