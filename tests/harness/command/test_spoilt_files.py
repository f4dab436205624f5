"""A spoilt file ends a command with 254 and a sentence that names it, not with a traceback."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from fencepost.harness.command import app
from tests.fuzz import resumed, sound
from tests.fuzz.doors import served

RUN = Path("results", "test", "20260101T000000.000001Z")


@pytest.fixture
def call(tmp_path, monkeypatch, capsys):
    """Run a command on a results folder with one judged run; return its exit code and output."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FENCEPOST_RESULTS", "results")
    results = sound.results()
    RUN.mkdir(parents=True)
    (RUN / "history.jsonl").write_bytes(sound.history())
    (RUN / "test.json").write_bytes((sound.RUN / "test.json").read_bytes())
    (RUN / "results.json").write_bytes(results)

    def called(*words):
        monkeypatch.setattr(sys, "argv", ["fencepost", *words])
        code = app.run()
        said = capsys.readouterr()
        assert "Traceback" not in said.err + said.out
        return code, said.err + said.out

    return called


def change(**fields):
    """Change fields of results.json; None removes one."""
    path = RUN / "results.json"
    found = json.loads(path.read_text()) | fields
    path.write_text(json.dumps({name: one for name, one in found.items() if one is not None}))


PIECE = {"valid": False, "summary": "s", "evidence": [{"what": 7}]}


@pytest.mark.parametrize(
    ("command", "fields", "said"),
    [
        ("explain test", {"checkers": None}, "`checkers`"),
        ("explain test", {"faults": ["x"]}, "faults[0]"),
        ("explain test", {"checkers": {"exclusion": PIECE}}, "evidence[0].what"),
        ("explain test", {"checkers": {"exclusion": {"valid": True}}}, "`summary`"),
        ("explain test", {"first_violation": {"time_s": "x"}}, "first_violation.time_s"),
        ("compare test test", {"stats": {"by_f": {"read": 7}}}, "stats.by_f"),
    ],
)
def test_a_field_of_results_that_is_missing_or_of_another_type_is_named(
    call, command, fields, said
):
    change(**fields)
    code, told = call(*command.split())
    assert code == 254 and "results.json" in told and said in told


def test_serve_shows_a_run_whose_checker_has_no_summary(call):
    change(checkers={"exclusion": {"valid": True}})
    assert served(RUN) == ""


def test_a_lock_with_a_name_like_markup_is_listed(call):
    found = json.loads((RUN / "test.json").read_text())
    for name in ("[/]", "[link=x]y", "list[str]"):
        (RUN / "test.json").write_text(json.dumps(found | {"lock": {"name": name}}))
        code, told = call("ls")
        assert code == 0 and name in told
        assert call("compare", "test", "test")[0] == 0


@pytest.mark.parametrize("deep", ["[" * 5000 + "]" * 5000, "9" * 401])
@pytest.mark.parametrize("name", ["matrix.json", "sweep.json", "campaign.json", "night.json"])
def test_a_deep_file_or_a_huge_number_takes_no_list_away(call, name, deep):
    folder = Path("results", "other", "20260101T000000.000002Z")
    folder.mkdir(parents=True)
    (folder / name).write_text(deep)
    code, told = call("ls")
    assert code == 0 and "test/20260101T000000.000001Z" in told
    assert call("nightly", "baseline", str(folder), "--baseline", "b.json")[0] == 254


def test_a_document_that_is_no_utf_8_is_named(call):
    Path("docs").mkdir()
    Path("docs", "guide.md").write_bytes(b"# a \xff\n")
    code, told = call("site", "site", "--docs", "docs")
    assert code == 254 and "docs/guide.md" in told


def test_a_campaign_of_hunts_whose_seeds_are_no_numbers_is_not_resumed(call):
    words, plan, results = resumed.plans()["hunt"]
    resumed.store("hunt", resumed.sound(plan, results).replace(b'"7"', b'"x"'))
    with resumed.nothing_runs():
        code, told = call(*words.split(), "--resume", "latest")
    assert code == 254 and "x" in told


@pytest.mark.parametrize("program", ["-x", "", "'", "--", "-"])
def test_a_program_that_is_no_command_is_refused(call, program):
    code, told = call("check", "--program", program, "--servers", "redis:1")
    assert code == 254 and "program" in told


@pytest.mark.parametrize("command", ["check", "hunt"])
@pytest.mark.parametrize("value", ["-" * 5000 + "1", "+".join("1" * 5000)], ids=["minus", "sum"])
def test_a_user_lock_that_python_cannot_parse_is_refused(call, command, value):
    Path("deep.py").write_text(f"x = {value}\nclass Other: ...\n")
    code, told = call(command, "deep.py:Lock", "--servers", "redis:1")
    assert code == 254 and "deep.py" in told


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["ascii", "cp437"])
def test_a_find_is_stored_and_shown_where_the_terminal_lacks_a_character(call, encoding):
    path = os.pathsep.join(map(os.path.abspath, sys.path))
    words = "hunt redlock --faults clock,partition --seed 13 --processes 1 --inherent"
    done = subprocess.run(
        [sys.executable, "-m", "fencepost", *words.split()],
        env=os.environ | {"PYTHONPATH": path, "PYTHONIOENCODING": encoding},
        capture_output=True, text=True, encoding=encoding,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (1, "")
    assert "again: fencepost hunt redlock" in done.stdout
    (folder,) = Path("results").glob("hunt-*/*Z")
    assert (folder / "report.html").is_file() and (folder / "history.jsonl").is_file()
