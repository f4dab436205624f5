"""The runs of the results folder: listed, shown and removed."""

from __future__ import annotations

import json
import os
import re
import sys
from datetime import UTC, datetime, timedelta

import pytest

from fencepost import output
from fencepost.harness.command import app
from fencepost.harness.errors import BadArguments
from fencepost.harness.locked import locked
from fencepost.harness.results import batch_index, results, run_index
from fencepost.report.exports import batches
from tests.report.matrices import cell, stored, violated
from tests.report.matrices import run as ran
from tests.report.pages.test_sweep import stored as swept


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("FENCEPOST_RESULTS", str(tmp_path / "results"))
    return tmp_path / "results"


@pytest.fixture
def call(folder, monkeypatch, capsys):
    def called(*words):
        monkeypatch.setattr(sys, "argv", ["fencepost", *words])
        output.guard_output()
        code = app.run()
        said = capsys.readouterr()
        return code, said.out + said.err

    return called


def made(test, valid=None, broken=(), lock="redis", **more):
    run = results.create(test)
    (run / "history.jsonl").write_text("{}\n")
    about = {"name": test, "lock": {"name": lock, "options": {}}, "seed": 5, "nemesis": []} | more
    results.write(run / "test.json", about)
    if valid is not None:
        fine = {"valid": True, "summary": "None.", "evidence": []}
        said = {"valid": False, "summary": "Two held it.", "evidence": []}
        found = {
            "schema": 1,
            "test": test,
            "valid": valid,
            "seed": 5,
            "faults": [],
            "checkers": dict.fromkeys(broken, said) | {"faults": fine},
            "first_violation": None,
            "stats": {"holds": 12, "ops": 60, "duration_s": 3.0, "by_f": {}},
            "notes": [],
            "run_notes": [],
            "live": False,
        }
        results.write(run / "results.json", found)
    return run


def name_of(run):
    return f"{run.parent.name}/{run.name}"


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


def suite(*good):
    folder = results.create("suite-redis")
    rows = [
        {
            "test": f"redis-{number}",
            "lock": "redis",
            "expected": {"resource": True},
            "observed": {"resource": came},
            "as_expected": came,
        }
        for number, came in enumerate(good)
    ]
    results.write(folder / "suite.json", rows)
    return folder


def campaign(*broken):
    folder = results.create("campaign-redlock")
    asked = {"schema": 1, "lock": "redlock", "seeds": [5, 6, 7], "asked": {}}
    results.write(folder / "campaign.json", asked)
    seeds = [
        {"seed": 5 + number, "schedules": 40, "broken": found, "strikes": len(found)}
        for number, found in enumerate(broken)
    ]
    (folder / "seeds.jsonl").write_text("".join(json.dumps(one) + "\n" for one in seeds))
    return folder


def matrix(*cells):
    folder = results.create("matrix")
    results.write(folder / "matrix.json", stored(*cells))
    return folder


def test_folders_of_many_runs_are_listed_with_their_results(call):
    suite(True, False)
    campaign(["lease_exclusion"], [])
    matrix(cell(ran(1000)), cell(violated("data", 5, holds=100), fault="kill"))
    made("hunt-redlock", False, ["resource"], hunt={"command": "again"})
    found = {one["kind"]: one for one in map(json.loads, call("ls", "--json")[1].splitlines())}
    assert {kind: (one["valid"], one["what"]) for kind, one in found.items()} == {
        "hunt": (False, "INVALID resource"),
        "matrix": (None, "Of 2 cells, data was damaged in 1."),
        "campaign": (False, "broken from 1 of 2 seeds, 1 left"),
        "suite": (False, "1 of 2 as published"),
    }
    assert found["matrix"]["holds"] == 1100
    listed = call("ls", "--kind", "suite")[1]
    assert "suite-redis/" in listed and "campaign" not in listed
    assert "campaign-redlock" in call("ls", "--lock", "redlock", "--kind", "campaign")[1]
    assert call("ls", "--kind", "trial")[0] == 254


def test_a_campaign_that_found_nothing_and_a_suite_with_nothing_published_are_not_valid(call):
    campaign([], [], [])
    suite()
    assert [json.loads(line)["valid"] for line in call("ls", "--json")[1].splitlines()] == [
        None
    ] * 2


@pytest.mark.parametrize(
    ("made_of", "said"),
    [
        (lambda: suite(True, False), "redis-1 NOT as published; broken: resource"),
        (lambda: campaign(["resource"]), "seed 5 broken: resource 1 injection, 40 schedules"),
        (lambda: matrix(cell(ran(1000))), "redis, no fault, guard none kept"),
    ],
)
def test_a_batch_is_shown_line_by_line_and_removed_without_its_runs(call, made_of, said):
    run = made("redis", True)
    folder = made_of()
    code, shown = call("show", name_of(folder))
    assert (code, said in " ".join(shown.split())) == (0, True)
    assert json.loads(call("show", folder.parent.name, "--json")[1])["lines"]
    assert call("rm", name_of(folder))[0] == 0
    assert not folder.exists()
    assert run.exists()


def test_two_batches_of_a_kind_are_compared_line_by_line(call):
    one, same, other = suite(True, True), suite(True, True), suite(True, False)
    assert call("compare", name_of(one), name_of(same))[0] == 0
    code, said = call("compare", name_of(one), name_of(other), "--json")
    found = json.loads(said)
    assert (code, found["alike"]) == (1, False)
    assert ["redis-1", "as published", "NOT as published; broken: resource"] in found["rows"]
    assert call("compare", name_of(one), name_of(campaign([])))[0] == 254


def sweep(*holds):
    folder = results.create("sweep")
    results.write(folder / "sweep.json", swept({(1.0, 0.5): [ran(many) for many in holds]}))
    return folder


def track_record(*outcomes):
    folder = results.create("track-record")
    rows = [
        {"key": f"defect-{number}/real servers", "outcome": outcome, "said": "So it is."}
        for number, outcome in enumerate(outcomes)
    ]
    results.write(folder / "track-record.json", rows)
    return folder


def test_sweeps_and_track_records_are_listed_and_compared(call):
    made = [sweep(1000), sweep(800), track_record("seen", "seen"), track_record("seen", "not seen")]
    found = [json.loads(line) for line in call("ls", "--json")[1].splitlines()]
    assert [(one["kind"], one["what"], one["holds"]) for one in reversed(found)] == [
        ("sweep", "redlock: no violation was seen in 1 setting.", 1000),
        ("sweep", "redlock: no violation was seen in 1 setting.", 800),
        ("track-record", "2 defects: 2 seen", None),
        ("track-record", "2 defects: 1 seen, 1 not seen", None),
    ]
    one, same, record, other = map(name_of, made)
    assert call("compare", one, same)[0] == 0
    assert call("compare", record, other)[0] == 1
    assert "So it is." in call("show", record)[1]


def test_measurements_of_a_suite_are_neither_as_published_nor_findings(call):
    folder = suite(True)
    rows = json.loads((folder / "suite.json").read_text())
    rate = {"runs": [{"run": "../../a/1Z", "counts": {}}, {"run": "../../a/2Z", "counts": {}}]}
    rows.append({"test": "a", "run": "../../a/1Z", "rate": rate, "as_expected": True})
    rows.append({"test": "b", "cost": {"locks": []}, "as_expected": False, "why": "no slower"})
    results.write(folder / "suite.json", rows)
    found = run_index.find(str(folder)).came
    assert {name: str(line) for name, line in found.lines.items()} == {
        "redis-0": "as published",
        "a": "measured",
        "b": "NOT as it should be; no slower",
    }
    assert found.words == "1 of 1 as published, 1 measured, 1 not measured as it should be"
    assert (found.valid, found.runs) == (False, ["../../a/1Z", "../../a/2Z"])
    results.write(folder / "suite.json", rows[1:2])
    found = run_index.find(str(folder)).came
    assert (found.words, found.valid) == ("1 measured", None)


def test_two_matrices_differ_by_states_and_not_by_figures(call):
    one, same = matrix(cell(ran(1000))), matrix(cell(ran(800)))
    assert call("compare", name_of(one), name_of(same))[0] == 0
    worse = matrix(cell(violated("data", 5, holds=100)))
    assert call("compare", name_of(one), name_of(worse))[0] == 1


def test_a_batch_in_progress_is_running_and_cannot_be_removed(call):
    folder = suite(True)
    with locked(folder):
        assert "running" in call("ls")[1]
        assert call("rm", name_of(folder))[0] == 254
    assert folder.exists()


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


def test_a_suite_that_cannot_be_used_is_no_baseline(call, tmp_path):
    (made("suite") / "suite.json").write_text('[{"test": "a"}]')
    code, said = call("nightly", "baseline", "suite", "--baseline", str(tmp_path / "b.json"))
    assert code == 254
    assert "cannot be used" in said
