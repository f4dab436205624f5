"""`fencepost register` and `fencepost reproduce`."""

from __future__ import annotations

import json
import sys

import pytest

from fencepost.harness.command import app
from fencepost.workloads.scenarios.register import standalone
from fencepost.workloads.scenarios.register.rows import NOT_SHOWN, ROWS


@pytest.fixture
def call(monkeypatch, capsys):
    def called(*words):
        monkeypatch.setattr(sys, "argv", ["fencepost", *map(str, words)])
        code = app.run()
        said = capsys.readouterr()
        return code or 0, said.out, said.err

    return called


def test_the_register_lists_every_row(call):
    code, said, _ = call("register", "--json")
    listed = json.loads(said)
    assert code == 0 and [row["name"] for row in listed["rows"]] == [row.name for row in ROWS]
    assert len(listed["not_shown"]) == len(NOT_SHOWN)
    code, shown, _ = call("register")
    assert code == 0 and all(row.name in shown for row in ROWS)


@pytest.mark.parametrize(
    ("pinned", "code", "told"),
    [
        ("redis==8.1.0", 1, "redis 8.1.0: redis-py-reacquire-zero, two holders"),
        ("redis==3.0", 0, "no row of the register concerns"),
        ("a b", 255, "'a b' is not a requirement"),
    ],
)
def test_check_exits_by_what_the_project_pins(tmp_path, call, pinned, code, told):
    file = tmp_path / "requirements.txt"
    file.write_text(pinned + "\n")
    exited, out, err = call("register", "--check", file)
    assert exited == code and told in out + err


def test_check_prints_json_for_programs(tmp_path, call):
    file = tmp_path / "requirements.txt"
    file.write_text("tooz\nrequests==2\n")
    code, out, _ = call("register", "--check", file, "--json")
    found = json.loads(out)
    assert code == 1 and found["packages"] == 2
    assert {one["package"] for one in found["rows"]} == {"tooz"}


def test_reproduce_writes_the_script_and_the_issue_and_overwrites_nothing_else(tmp_path, call):
    file, row = tmp_path / "shown.py", ROWS[0]
    for _ in range(2):
        assert call("reproduce", row.name, "--to", file)[0] == 0
    assert file.read_text() == standalone.text(row.script)
    said = (tmp_path / "shown.md").read_text()
    assert row.title in said and "by `python shown.py`" in said
    file.write_text("mine")
    code, _, err = call("reproduce", row.name, "--to", file)
    assert code == 254 and "move it away first" in err
    assert file.read_text() == "mine"


def test_a_row_that_is_not_there_is_refused_with_those_that_are(call):
    code, _, err = call("reproduce", "redis-py-reacquire-zer")
    assert code == 254 and "Did you mean redis-py-reacquire-zero?" in err
    assert "`fencepost register` lists them" in err
