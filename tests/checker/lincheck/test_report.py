"""The text that the command prints for a verdict, on standard output and standard error."""

import json
import os

import pytest

from fencepost.checker.lincheck import check, command
from fencepost.checker.lincheck.command import main, report
from fencepost.checker.lincheck.evidence import Evidence
from fencepost.checker.lincheck.verdict import Verdict


def lines(*ops):
    return "".join(
        json.dumps({"process": p, "type": kind, "f": f, "value": value}) + "\n"
        for p, kind, f, value in ops
    )


TWICE = lines(
    (0, "invoke", "acquire", {"lock": "a"}),
    (0, "ok", "acquire", {"lock": "a"}),
    (1, "invoke", "acquire", {"lock": "b"}),
    (1, "ok", "acquire", {"lock": "b"}),
    (2, "invoke", "acquire", {"lock": "a"}),
    (2, "ok", "acquire", {"lock": "a"}),
)
WRITTEN = lines((0, "invoke", "write", 1), (0, "ok", "write", 1))


@pytest.fixture
def run(tmp_path, capsys):
    """Run the command on one file with this text: (exit code, lines, complaints, the file)."""

    def run(text, *arguments):
        file = tmp_path / "history"
        file.write_text(text, encoding="utf-8")
        code = main([str(file), *arguments])
        captured = capsys.readouterr()
        out = [json.loads(line) for line in captured.out.splitlines()]
        return code, out, captured.err, str(file)

    return run


def test_a_failed_object_is_named_with_the_op_the_reason_and_the_lines(run):
    code, [line], err, file = run(TWICE, "--model", "owner-mutex")
    seconds = line.pop("seconds")
    assert (code, err, seconds == round(seconds, 6)) == (1, "", True)
    assert line == {
        "file": file,
        "valid": False,
        "operations": 3,
        "object": "a",
        "failed": {"line": 5, "process": 2, "op": "acquire"},
        "why": "2 can't acquire: 0 holds it",
        "sub_history_lines": [1, 5],
    }


def test_a_valid_history_has_a_line_without_evidence(run):
    code, [line], err, file = run(WRITTEN, "--model", "register")
    del line["seconds"]
    assert (code, err) == (0, "")
    assert line == {"file": file, "valid": True, "operations": 1}


def test_an_object_without_a_name_is_not_named(run):
    text = lines(*((p, kind, "acquire", None) for p in (0, 1) for kind in ("invoke", "ok")))
    _, [line], _, _ = run(text, "--model", "owner-mutex")
    assert "object" not in line


def test_seconds_are_shown_to_the_microsecond():
    found = check([], "register")
    verdict = Verdict(True, found.model, 0, 0.123456789)
    assert report("f", verdict, None)["seconds"] == 0.123457


def test_evidence_is_shown_for_a_false_verdict_only():
    verdict = check([], "register")
    for evidence in (verdict.evidence(), Evidence(True, {}, complete=False, reason="no time")):
        told = report("f", verdict, evidence)
        assert set(told) == {"file", "valid", "operations", "seconds"}


def test_a_torn_line_is_reported_next_to_the_verdict(run):
    code, [line], err, file = run(WRITTEN + '{"proc', "--model", "register")
    assert (code, line["valid"]) == (0, True)
    assert err == f"{file}: line 3 is torn (no newline, no JSON) and was dropped\n"


def test_the_format_that_is_asked_for_is_read(run):
    text = '{:process 0, :type :invoke, :f :put, :key "a", :value ["b" "x"]}'
    assert run(text, "--model", "kv")[0] == 254  # read as porcupine-kv, the value is a list
    assert run(text, "--model", "kv", "--format", "edn")[0] == 0


def test_a_page_that_cannot_be_written_is_bad_input(run, tmp_path):
    out = str(tmp_path / "none" / "page.html")
    code, told, err, _ = run(WRITTEN, "--model", "register", "--html", out)
    assert (code, told) == (254, [])
    assert err.startswith(f"{out}: can")
    assert err.endswith("be written: No such file or directory\n")


def test_a_page_names_the_file_and_is_utf_8(run, tmp_path, monkeypatch):
    out = tmp_path / "page.html"
    code, [line], _, file = run(WRITTEN, "--model", "register", "--html", str(out))
    assert (code, line["valid"]) == (0, True)
    assert json.dumps(file) in out.read_text(encoding="utf-8")


def test_a_defect_of_the_command_is_no_verdict(run, monkeypatch):
    def broken(*_, **__):
        raise RuntimeError("a defect")

    monkeypatch.setattr(command, "check_numbered", broken)
    code, told, err, file = run(WRITTEN, "--model", "register")
    assert (code, told) == (255, [])
    assert err.startswith(f"{file}: lincheck crashed\nTraceback")
    assert err.endswith("RuntimeError: a defect\n")


def test_limits_are_those_that_were_asked_for(run, monkeypatch):
    asked = []
    check_numbered = command.check_numbered

    def watched(numbered, model, budget):
        asked.append((budget.time_limit, budget.memory_limit))
        return check_numbered(numbered, model, budget)

    monkeypatch.setattr(command, "check_numbered", watched)
    run(WRITTEN, "--model", "register", "--time-limit", "3.5", "--memory-limit", "70")
    run(WRITTEN, "--model", "register")
    assert asked == [(3.5, 70.0), (None, None)]


@pytest.mark.parametrize(
    ("limits", "left", "page", "seconds"),
    [
        ([], None, False, command.EVIDENCE_S),
        ([], None, True, command.PAGE_S),
        (["--time-limit", "9"], 0.5, False, 0.5),
        (["--time-limit", "9"], 8, False, command.EVIDENCE_S),
        (["--time-limit", "9"], 8, True, 8),
        (["--time-limit", "9"], -1, True, 0),
    ],
)
def test_evidence_uses_the_rest_of_the_time_limit(
    run, tmp_path, monkeypatch, limits, left, page, seconds
):
    given = []
    evidence = Verdict.evidence
    monkeypatch.setattr("fencepost.checker.lincheck.budget.Budget.left", lambda self: left)

    def watched(self, time_limit, memory_limit):
        given.append((time_limit, memory_limit))
        return evidence(self, 5.0, memory_limit)

    monkeypatch.setattr(Verdict, "evidence", watched)
    more = ["--html", str(tmp_path / "page.html")] if page else []
    run(TWICE, "--model", "owner-mutex", "--memory-limit", "90", *limits, *more)
    assert given == [(seconds, 90.0)]


@pytest.mark.parametrize("limit", ["--time-limit", "--memory-limit"])
@pytest.mark.parametrize("text", ["0", "-1", "x", "inf", "nan"])
def test_a_limit_is_a_number_above_0(run, limit, text):
    code, told, err, _ = run(WRITTEN, "--model", "register", limit, text)
    assert (code, told) == (254, [])
    assert f"argument {limit}: {text!r} is not a number above 0" in err
    assert err.startswith("usage: fencepost lincheck")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["--model", "mutex", "--failed-release", "maybe"],
            "argument --failed-release: invalid choice: 'maybe'",
        ),
        (["--model", "register", "--format", "xml"], "argument --format: invalid choice: 'xml'"),
        (["--model", "register", "--init", "{"], "--init is not JSON: "),
        (["--model", "lock"], "unknown model 'lock'"),
        ([], "the following arguments are required: --model"),
    ],
)
def test_invalid_arguments_are_named(run, arguments, said):
    code, told, err, _ = run(WRITTEN, *arguments)
    assert (code, told) == (254, [])
    assert f"fencepost lincheck: {said}" in err


def test_a_page_is_of_one_file(run, tmp_path, capsys):
    assert main(["a", "b", "--model", "register", "--html", "x"]) == 254
    assert "--html takes only one file at a time" in capsys.readouterr().err


def test_help_names_every_option_and_its_argument(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    assert main(["--help"]) == 0
    told = capsys.readouterr().out
    assert told.startswith("usage: fencepost lincheck [-h] --model M")
    for option in (
        "FILE", "--model M", "--init JSON", "--time-limit S", "--memory-limit MB", "--html OUT",
        "--format {jsonl,edn,porcupine-etcd,porcupine-kv}", "--failed-release {nothing,ended}",
    ):  # fmt: skip
        assert f"  {option} " in told or f"  {option}\n" in told
    assert "register, cas-register, multi-register" in told


def test_lines_are_printed_as_soon_as_they_are_known(tmp_path):
    """With several files, each line is printed before the next file is read."""
    (tmp_path / "history").write_text(WRITTEN)
    reading, writing = os.pipe()
    seen = []
    with os.fdopen(writing, "w", buffering=1 << 16) as out, os.fdopen(reading, "rb", 0) as back:
        os.set_blocking(reading, False)
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr("sys.stdout", out)
            assert main([str(tmp_path / "history"), "--model", "register"]) == 0
            seen.append(back.read())
    assert json.loads(seen[0])["valid"] is True
