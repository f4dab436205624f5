"""`--fail-on` selects the questions of the exit code; the terminal shows each answer."""

from __future__ import annotations

import json
import sys

import pytest

from fencepost.checker.history.history import Op
from fencepost.harness.command import app
from fencepost.harness.errors import BadArguments
from fencepost.harness.spec.fail_on import must_be_judged, read

MS = 1_000_000
TTL = 100 * MS


@pytest.fixture
def analyzed(tmp_path, monkeypatch, capsys):
    """A stored run in which a client works past its lease, judged by the command line."""
    asked = {"lock": "orders", "ttl": TTL}

    def op(index, at, process, type, f, **value):
        return Op(index, at * MS, process, type, f, value, node=f"client-{process}").to_json()

    ops = [
        op(0, 1, 1, "invoke", "acquire", **asked),
        op(1, 2, 1, "ok", "acquire", **asked, token=None, hold="h1", deadline=100 * MS),
        op(2, 200, 2, "invoke", "acquire", **asked),
        op(3, 201, 2, "ok", "acquire", **asked, token=None, hold="h2", deadline=300 * MS),
        op(4, 210, 2, "invoke", "release", lock="orders", hold="h2"),
        op(5, 211, 2, "ok", "release", lock="orders", hold="h2"),
    ]
    (tmp_path / "history.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ops))
    test = {"name": "late", "checkers": ["lease_exclusion", "mutual_exclusion"]}
    (tmp_path / "test.json").write_text(json.dumps(test))

    def call(*options):
        monkeypatch.setattr(sys, "argv", ["fencepost", "analyze", str(tmp_path), *options])
        code = app.run()
        said = capsys.readouterr()
        return code, said.err + said.out

    return call


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        ([], 1),
        (["--fail-on", "all"], 1),
        (["--fail-on", "service"], 0),
        (["--fail-on", "lease_exclusion"], 0),
        (["--fail-on", "clients"], 1),
        (["--fail-on", "service,mutual_exclusion"], 1),
        (["--fail-on", "data"], 2),
    ],
)
def test_the_exit_code_answers_the_selected_questions(analyzed, asked, code):
    found, said = analyzed(*asked)
    assert found == code, said
    assert ("On " in said) == (bool(asked) and asked != ["--fail-on", "all"])


def test_the_verdicts_are_grouped_by_question_with_a_concluding_sentence(analyzed):
    _, said = analyzed()
    lines = [line.strip() for line in said.splitlines()]
    assert lines[0] == "Did the lock service keep its promise? yes"
    assert lines[1].startswith("lease_exclusion   valid")
    assert lines[2] == "Did two clients believe at once? yes"
    assert lines[3].startswith("mutual_exclusion  INVALID")
    assert "Was the test carried out? yes" in lines[4:6]
    assert "No fault was requested, so it covers none." in said
    assert "A client worked past its lease: no lock service can prevent this" in said


def test_an_unknown_question_is_refused_with_the_valid_ones(analyzed):
    code, said = analyzed("--fail-on", "servce")
    assert code == 254
    assert "fail-on servce: there is no such question or checker" in said
    assert "all, service, clients, data, lease_exclusion" in said


def test_a_checker_that_the_test_does_not_run_is_refused_with_the_reason():
    with pytest.raises(BadArguments, match=r"fail-on fencing: this test does not run it \(no tok"):
        must_be_judged(["fencing"], {"fencing": "no token"})
    must_be_judged(["service"], {"fencing": "no token"})


def test_names_come_as_text_or_one_by_one():
    assert read(" service, data,service ") == read(["service", "data"]) == ("service", "data")
    assert read(None) == read("all") == ()
