"""`fencepost nightly`: it runs, resumes and compares nightly runs, and writes files for CI."""

from __future__ import annotations

import json
import sys
import xml.etree.ElementTree as ElementTree

import pytest

from fencepost.harness.campaigns import baseline, nightly
from fencepost.harness.campaigns.baseline import Known
from fencepost.harness.command import app
from tests.harness.campaigns.nights import Parts, night, scenario, suite_of


@pytest.fixture(autouse=True)
def root(monkeypatch, tmp_path):
    monkeypatch.setenv("FENCEPOST_RESULTS", str(tmp_path / "results"))
    (tmp_path / "results").mkdir()


@pytest.fixture
def call(monkeypatch, capsys, tmp_path):
    def made(*words):
        monkeypatch.setattr(sys, "argv", ["fencepost", *map(str, words)])
        code = app.run()
        said = capsys.readouterr()
        return code, said.err + said.out

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(nightly, "process", Parts())
    return made


def test_a_nightly_run_from_the_command_line_writes_the_files_for_ci(call, tmp_path):
    baseline.write(tmp_path / "known.json", {"suite/redis-control-none": Known(["as published"])})
    files = ("--junit", "j.xml", "--summary", "s.md", "--badge", "b.json")
    code, said = call(
        "nightly", "run", "--budget", "5m", "--seed", 9, "--baseline", "known.json",
        "--only", "suites", *files,
    )  # fmt: skip
    assert (
        code == 0
        and "1 same" in said
        and "crashed" not in said
        and "--seed 9 --only suites" in said
    )
    suites = ElementTree.parse(tmp_path / "j.xml").getroot()
    assert {one.get("name") for one in suites} == {"fencepost.night-suite"}
    assert json.loads((tmp_path / "b.json").read_text())["schemaVersion"] == 1
    assert "Nothing changed" in (tmp_path / "s.md").read_text()


class Interrupted(Parts):
    """Is interrupted as the stage or the hunt that these words name begins."""

    def __init__(self, *at):
        super().__init__()
        self.at = list(at)

    def __call__(self, words, limit_s):
        if words[: len(self.at)] == self.at:
            raise KeyboardInterrupt
        return super().__call__(words, limit_s)


@pytest.mark.parametrize("at", [("matrix",), ("hunt", "etcd")])
def test_an_interrupted_nightly_run_is_resumed_where_it_was(call, monkeypatch, tmp_path, at):
    baseline.write(tmp_path / "known.json", {})
    first, rest = Interrupted(*at), Parts()
    monkeypatch.setattr(nightly, "process", first)
    known = ("--baseline", "known.json")
    code, said = call("nightly", "run", "--seed", 7, "--parallel", 2, *known)
    assert code == 130 and "resume with: fencepost nightly run --resume " in said
    monkeypatch.setattr(nightly, "process", rest)
    again = said.split("nightly run --resume ")[1].split()[0]
    code, said = call("nightly", "run", "--resume", again, *known)
    every = [tuple(words[:2]) for words, _ in (*first.ran, *rest.ran)]
    assert len(every) == len({*every}) and every[len(first.ran)][: len(at)] == at
    assert all(words[-2:] == ["--parallel", "2"] for words, _ in (*first.ran, *rest.ran))
    assert nightly.read(nightly.find("latest")).over
    code, said = call("nightly", "run", "--resume", again, *known)
    assert code == 254 and "has ended" in said


def test_a_nightly_run_tells_a_program_its_outcomes(call, monkeypatch, tmp_path):
    parts = Parts()
    monkeypatch.setattr(nightly, "process", parts)
    baseline.write(tmp_path / "known.json", {"suite/redis-control-none": Known(["as published"])})
    words = ("--seed", 9, "--only", "suites", "--baseline", "known.json")
    code, said = call("nightly", "run", "--json", *words)
    result = json.loads(said.splitlines()[-1])
    assert (code, result["event"], result["exit_code"]) == (0, "result", 0)
    assert result["rows"]["suite/redis-control-none"] == {
        "state": "same",
        "marks": ["as published"],
    }
    assert all(one[-1] == "--json" for one, _ in parts.ran)
    assert nightly.read(nightly.find("latest")).options == []


def test_a_changed_outcome_is_shown_next_to_the_known_one(call, tmp_path):
    marks = ["NOT as published", "resource holds"]
    baseline.write(tmp_path / "known.json", {"suite/redis-control-none": Known(marks)})
    code, said = call("nightly", "run", "--baseline", "known.json", "--only", "suites")
    assert code == 1
    line = next(row for row in said.splitlines() if row.startswith("suite/redis-control-none"))
    assert "NOT as published" in line and "as published" in line.split("resource holds")[1]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["run", "--budget", "soon"], "budget 'soon' is not a duration"),
        (["run", "--budget", "5s"], "too short for a night"),
        (["run", "--baseline", "none.json"], "the baseline none.json does not exist"),
        (["run", "--baseline", "bad.json"], "the baseline bad.json cannot be used"),
        (["run", "--only", "suits"], "Did you mean suites?"),
        (["run", "--resume", "latest", "--seed", "1"], "--seed cannot be combined with --resume"),
        (
            ["run", "--resume", "latest", "--parallel", "2"],
            "--parallel cannot be combined with --resume",
        ),
        (["run", "--resume", "no-night"], "'no-night' is not a nightly run"),
        (["run", "--engine", "dask"], "--engine dask needs --scheduler"),
        (
            ["run", "--engine", "dask", "--scheduler", "tcp://x:1", "--parallel", "2"],
            "leave --hosts",
        ),
        (["run", "--hosts", "bad.json", "--parallel", "2"], "--parallel needs containers"),
        (["run", "--junit", "/dev/null/x"], "cannot be written"),
        (["report-issue", "no-night"], "'no-night' is not a nightly run"),
        (["trend", "t.html"], "there is no nightly run yet"),
    ],
)
def test_bad_input_is_one_sentence(call, tmp_path, words, said):
    (tmp_path / "bad.json").write_text("[]")
    (tmp_path / "docs").mkdir()
    baseline.write(tmp_path / "docs" / "baseline.json", {})
    code, text = call("nightly", *words)
    assert code == 254 and said in text and "Traceback" not in text


def test_a_baseline_is_made_of_nightly_runs_and_of_single_suites(call, tmp_path):
    folder, _ = night(Parts())
    (alone,) = suite_of(scenario("b"))
    code, said = call("nightly", "baseline", folder, "suite-redis", "--baseline", "new.json")
    assert code == 0 and "suite/redis-control-none: new -> as published" in said
    assert set(baseline.read(tmp_path / "new.json")) >= {"suite/redis-control-none", alone.key}
