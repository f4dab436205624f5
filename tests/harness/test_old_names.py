"""An option's name of the last version works for one version more, and says the new one."""

from __future__ import annotations

import json
import sys
import warnings

import pytest

import fencepost
from fencepost.harness import old_names
from fencepost.harness.command import app
from fencepost.harness.hunting.hunts import described

HUNT = ("hunt", "broken-always-yes", "--faults", "pause", "--seed", "1", "--processes", "1")


@pytest.fixture
def run(monkeypatch, tmp_path, capsys):
    """Run the command line; return its exit code, standard output and standard error."""
    monkeypatch.setenv("FENCEPOST_RESULTS", str(tmp_path))

    def call(*words):
        monkeypatch.setattr(sys, "argv", ["fencepost", *words])
        code = app.run()
        return code, *capsys.readouterr()

    return call


def test_each_old_option_is_none_of_its_command_today_and_the_new_one_is():
    import typer

    for command, renamed in old_names.RENAMED.items():
        made = typer.main.get_command(app.app(command)).commands[command]
        options = {option for parameter in made.params for option in parameter.opts}
        for old, new in renamed.items():
            assert f"--{new}" in options and f"--{old}" not in options


@pytest.mark.parametrize("words", [("--until", "ownership"), ("--until=ownership",)])
def test_an_old_option_works_and_says_its_new_name_in_one_line(run, tmp_path, words):
    code, _, err = run(*HUNT, *words, *words)
    assert (code, err) == (1, "fencepost: --until is now --goal\n")
    (test,) = tmp_path.glob("hunt-*/*Z/test.json")
    stored = json.loads(test.read_text())
    assert stored["until"] == ["ownership"]
    # It is repeated by the name of today.
    assert "--goal" in stored["hunt"]["command"] and "--until" not in stored["hunt"]["command"]


def test_a_name_of_today_says_nothing(run):
    code, _, err = run(*HUNT, "--goal", "ownership", "--concurrency", "2")
    assert (code, err) == (1, "")


def test_another_command_s_option_of_that_name_is_left_alone():
    line = ["test", "redis", "--until", "ownership"]
    assert old_names.words(line) == line
    assert old_names.words([]) == []


def test_an_old_keyword_works_and_warns_its_caller(monkeypatch, tmp_path):
    monkeypatch.setenv("FENCEPOST_RESULTS", str(tmp_path))
    asked = {"faults": "pause", "seed": 1, "budget": "20s", "processes": 1}
    session = fencepost.Session()
    with pytest.warns(DeprecationWarning, match=r"^until is now goal$") as caught:
        old = session.hunt("broken-always-yes", until="ownership", **asked)
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        new = session.hunt("broken-always-yes", goal=["ownership"], **asked)
    assert old.command == new.command and " --goal ownership " in new.command
    with pytest.raises(TypeError, match="hunt: until is now goal: give only the latter"):
        session.hunt("redis", until="ownership", goal="liveness")


def test_arguments_that_an_earlier_version_stored_are_read_without_a_word():
    stored = {"until": "ownership", "budget": "5s", "clients": 3}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        asked = old_names.translated("hunt", stored)
    hunt = described("redis", {}, {}, **asked)
    assert hunt.setting.goals == ("ownership",) and len(hunt.setting.clients) == 3
