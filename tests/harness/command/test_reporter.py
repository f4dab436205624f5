"""Output of a run for a terminal, with --quiet, as JSON lines, and for a CI."""

from __future__ import annotations

import json
import sys
from xml.etree import ElementTree

import pytest

from fencepost.harness.cluster import provision
from fencepost.harness.command import app
from fencepost.harness.command import test as command
from fencepost.harness.command.files import Files
from fencepost.harness.errors import Crashed
from fencepost.harness.execute.interrupted import Interrupted
from fencepost.harness.execute.progress import Status
from tests import schema

pytestmark = pytest.mark.slow

RUN = ["test", "redis", "--time", "1s", "--concurrency", "2", "--seed", "7",
       "-o", "retries=0"]  # fmt: skip


@pytest.fixture
def run(machine, short, monkeypatch, capsys):
    """Run the command line on a cluster in memory; return its exit code and both outputs."""

    def call(*options):
        monkeypatch.setattr(sys, "argv", ["fencepost", *RUN, *options])
        code = app.run()
        said = capsys.readouterr()
        return code, said.out, said.err

    return call


def lines(out):
    rows = [json.loads(line) for line in out.splitlines()]
    for row in rows:
        schema.check("line", row)
    return rows


def test_json_output_has_one_object_a_line_and_the_result_last(run, tmp_path):
    code, out, err = run("--json")
    rows = lines(out)
    assert (code, err) == (0, "")
    assert rows[0]["event"] == "started"
    assert {row["event"] for row in rows} == {"started", "said", "progress", "result"}
    last = rows[-1]
    assert (last["event"], last["answer"], last["exit_code"]) == ("result", True, 0)
    assert last["results"]["seed"] == 7
    assert last["folder"].startswith(str(tmp_path))


def test_json_output_has_an_error_and_no_result(run, monkeypatch):
    def fails(say):
        raise Crashed("no engine answers")

    monkeypatch.setattr(provision.docker_engine, "ensure", fails)
    code, out, err = run("--json")
    assert code == 255 and "no engine answers" in err
    assert lines(out)[-1] == {"event": "error", "error": "no engine answers", "exit_code": 255}
    code, out, _ = run("--json", "--guard", "high")
    assert (code, lines(out)[-1]["exit_code"]) == (254, 254)


def test_quiet_output_is_the_verdict_only(run):
    code, out, err = run("-q")
    assert (code, err) == (0, "")
    verdict, report = out.splitlines()
    assert verdict.startswith("Valid: the lock service kept its promise")
    assert report.startswith("report: ")


def test_a_junit_file_is_written_on_success_and_on_failure(run, machine, monkeypatch, tmp_path):
    file = tmp_path / "out" / "junit.xml"
    assert run("-q", "--junit", str(file))[0] == 0
    (suite,) = ElementTree.parse(file).getroot()
    assert (suite.get("failures"), suite.get("errors")) == ("0", "0")

    def fails(say):
        raise Crashed("no engine answers")

    monkeypatch.setattr(provision.docker_engine, "ensure", fails)
    assert run("-q", "--junit", str(file))[0] == 255
    (suite,) = ElementTree.parse(file).getroot()
    assert suite.find("testcase/error").get("message") == "Crashed: no engine answers"


def test_a_junit_file_that_cannot_be_written_is_refused_before_the_run(run, machine, tmp_path):
    code, _, err = run("--junit", str(tmp_path))
    assert code == 254
    assert f"--junit: {tmp_path} cannot be written: Is a directory" in err
    assert not any(cluster.ups for cluster in machine.clusters.values())


def test_files_that_can_no_longer_be_written_are_told_and_the_verdict_stays(
    run, monkeypatch, tmp_path
):
    file, judged = tmp_path / "junit.xml", command.run
    ends = [lambda outcome: outcome, _interrupt]

    def blocked(*given, **more):
        outcome = judged(*given, **more)
        file.unlink()
        file.mkdir()
        return ends.pop(0)(outcome)

    monkeypatch.setattr(command, "run", blocked)
    code, out, err = run("-q", "--junit", str(file), "--badge", str(tmp_path / "badge.svg"))
    assert code == 255 and out.startswith("Valid: ")
    assert err == f"fencepost: --junit: {file} cannot be written: Is a directory\n"
    assert (tmp_path / "badge.svg").read_text().startswith("<svg")
    file.rmdir()
    code, out, err = run("-q", "--junit", str(file))
    assert code == 130 and out.startswith("Valid: ") and f"--junit: {file} cannot be" in err


def _interrupt(outcome):
    raise Interrupted(outcome)


def test_an_error_of_the_run_is_told_although_the_junit_file_cannot_be_written(
    run, monkeypatch, tmp_path
):
    def fails(say):
        raise Crashed("no engine answers")

    monkeypatch.setattr(provision.docker_engine, "ensure", fails)
    monkeypatch.setattr(Files, "must_be_writable", lambda files: None)
    code, _, err = run("-q", "--junit", str(tmp_path))
    assert code == 255 and "Is a directory" in err and "no engine answers" in err


def test_quiet_and_json_exclude_one_another(run):
    code, _, err = run("-q", "--json")
    assert code == 254 and "--quiet and --json cannot be combined" in err


def test_an_interrupted_run_ends_with_the_verdict_so_far_and_its_path(run, monkeypatch):
    carry_out = command.run

    def interrupted(*given, **more):
        raise Interrupted(carry_out(*given, **more))

    monkeypatch.setattr(command, "run", interrupted)
    code, out, err = run()
    assert code == 130
    assert "Did the lock service keep its promise? yes" in out
    assert "report: " in out and "report.html" in out
    assert "interrupted" in err


def test_a_status_is_a_line_of_its_own():
    schema.check("line", {"event": "progress", "faults_on": [], **_fields()})


def _fields():
    status = vars(Status("running", 1.5, 20, 3, []))
    return {name: value for name, value in status.items() if name != "on"}
