"""The command: its output, its exit codes, and its limits."""

import json
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from random import Random

import pytest

from fencepost.checker.lincheck import check
from fencepost.checker.lincheck.command import main
from fencepost.checker.lincheck.models import LOCKS
from tests.checker.lincheck.lincheck_histories import SUBJECTS, history


def lines(*ops):
    return "".join(
        json.dumps(dict(zip(("process", "type", "f", "value"), op, strict=True))) + "\n"
        for op in ops
    )


GOOD = lines(
    (0, "invoke", "write", 1),
    (0, "ok", "write", 1),
    (1, "invoke", "read", None),
    (1, "ok", "read", 1),
)
STALE = lines(
    (0, "invoke", "write", 1),
    (0, "ok", "write", 1),
    (1, "invoke", "read", None),
    (1, "ok", "read", 0),
)


@pytest.fixture
def run(tmp_path, capsys):
    def run(texts, *arguments):
        files = []
        for index, text in enumerate(texts):
            files.append(str(tmp_path / f"history{index}"))
            Path(files[-1]).write_text(text)
        code = main([*files, *arguments])
        captured = capsys.readouterr()
        return code, [json.loads(line) for line in captured.out.splitlines()], captured.err

    return run


def explosive(count=200):
    """Return a queue whose enqueues all run at once: no order is better than another.

    One value occurs twice, so that no fast path takes it.
    """
    yield from (
        {"process": i, "type": "invoke", "f": "enqueue", "value": i or 1} for i in range(count)
    )
    yield from ({"process": i, "type": "ok", "f": "enqueue", "value": i or 1} for i in range(count))


def test_a_valid_file_is_0_an_invalid_one_1_and_of_several_the_worst_counts(run):
    model = ("--model", "register", "--init", "0")
    code, (line,), err = run([GOOD], *model)
    assert (code, line["valid"], line["operations"], err) == (0, True, 2, "")
    assert set(line) == {"file", "valid", "operations", "seconds"}
    code, (first, second), _ = run([GOOD, STALE], *model)
    assert (code, first["valid"], second["valid"]) == (1, True, False)
    assert second["failed"] == {"line": 3, "process": 1, "op": "read -> 0"}
    assert second["why"] == "can't read 0 from 1"
    assert run([GOOD, "nonsense"], *model)[0] == 254


def test_bad_input_names_file_line_and_reason_and_gives_no_verdict(run):
    code, out, err = run([GOOD + lines((0, "ok", "write", 1))], "--model", "register")
    assert (code, out) == (254, [])
    assert "history0:5: process 0 completes write, which it never invoked" in err


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("--model", "none"),
        ("--model", "register", "--init", "{"),
        ("--model", "kv", "--init", "3"),
        ("--model", "register", "--time-limit", "-1"),
        ("--model", "register", "--time-limit", "x"),
        ("--model", "register", "--format", "xml"),
        ("--model", "mutex", "--failed-release", "maybe"),
        ("--model", "register", "--unknown"),
    ],
)
def test_bad_arguments_are_254_and_never_2(run, arguments):
    code, out, err = run([GOOD], *arguments)
    assert (code, out) == (254, [])
    assert "fencepost lincheck" in err


def test_an_op_of_another_kind_of_object_is_bad_input(run):
    code, _, err = run([GOOD], "--model", "counter")
    assert code == 254
    assert "counter knows add, read, not 'write'" in err


@pytest.mark.parametrize(
    ("name", "op"),
    [
        ("cas-register", ("cas", 3)),
        ("kv", ("put", "x")),
        ("kv", ("put", ["k", 3])),
        ("multi-register", ("txn", [["read"]])),
        ("counter", ("add", "1")),
        ("semaphore", ("acquire", {"permits": 0})),
        ("rw-lock", ("acquire", {"mode": "half"})),
        ("lease-mutex", ("acquire", {"ttl": -1})),
        ("lease-mutex", ("acquire", {"ttl": 5})),
        ("mutex", ("acquire", [1])),
        ("fifo-queue", ("enqueue", None)),
    ],
)
def test_a_value_that_the_model_can_not_read_is_bad_input(run, name, op):
    code, out, err = run([lines((0, "invoke", *op))], "--model", name)
    assert (code, out) == (254, [])
    assert "history0:1: " in err


def test_a_time_limit_is_kept_and_gives_unknown_with_the_reason(run):
    text = "".join(json.dumps(event) + "\n" for event in explosive())
    code, (line,), _ = run([text], "--model", "fifo-queue", "--time-limit", "0.3")
    assert (code, line["valid"]) == (2, "unknown")
    assert "time limit of 0.3 s" in line["reason"]
    # Without a limit it would take hours; how much more than 0.3 s it takes depends on the machine.
    assert line["seconds"] < 240


def test_a_memory_limit_is_kept_and_gives_unknown_with_the_reason():
    verdict = check(explosive(), "fifo-queue", memory_limit=40, time_limit=600)
    assert verdict.valid == "unknown"
    assert "memory limit of 40 MB" in verdict.reason


def test_a_failed_release_means_what_the_option_says(run):
    text = lines(
        (0, "invoke", "acquire", None),
        (0, "ok", "acquire", None),
        (0, "invoke", "release", None),
        (0, "fail", "release", None),
        (1, "invoke", "acquire", None),
        (1, "ok", "acquire", None),
    )
    for name in (
        "mutex",
        "owner-mutex",
        "reentrant-mutex",
        "rw-lock",
        "semaphore",
        "fenced-mutex",
        "lease-mutex",
    ):
        assert run([text], "--model", name)[0] == 1
        assert run([text], "--model", name, "--failed-release", "ended")[0] == 0


def test_a_failed_release_decides_a_jepsen_history_of_a_lock(run, tmp_path):
    """The history is written as by Jepsen, whose verdict on etcd's lock depended on this."""
    rows = [
        (0, "invoke", "acquire"),
        (0, "ok", "acquire"),
        (0, "invoke", "release"),
        (0, "fail", "release"),
        (1, "invoke", "acquire"),
        (1, "ok", "acquire"),
    ]
    text = "\n".join(
        f"{{:process {process}, :type :{kind}, :f :{f}, :value nil, :time {number}}}"
        for number, (process, kind, f) in enumerate(rows)
    )
    for model in ("mutex", "owner-mutex"):
        assert run([text], "--model", model, "--format", "edn")[0] == 1
        ended = ("--failed-release", "ended")
        assert run([text], "--model", model, "--format", "edn", *ended)[0] == 0


def test_a_clients_own_notices_are_no_ops(run):
    text = lines(
        (0, "invoke", "acquire", {"lock": "a", "ttl": 5}),
        (1, "invoke", "acquire", {"lock": "a", "ttl": 5}),
        (1, "info", "lost", {"lock": "a", "hold": None}),
        (0, "ok", "acquire", {"lock": "a", "ttl": 5, "hold": "x"}),
        (0, "info", "renewed", {"lock": "a", "hold": "x", "deadline": 9}),
        (0, "info", "lost", {"lock": "a", "hold": "x"}),
    )
    assert run([text], "--model", "owner-mutex")[0] == 0


@pytest.mark.parametrize("name", [*LOCKS, "register", "cas-register", "multi-register"])
def test_a_client_that_closes_its_sessions_is_no_op_of_a_lock_or_a_register(run, name):
    text = lines(
        (0, "invoke", "close", {"after": "info"}),
        (1, "info", "lost", {"lock": "a", "hold": None}),
        (0, "ok", "close", {"after": "info"}),
        (1, "info", "renewed", {"lock": "a", "hold": 1, "deadline": 2}),
    )
    code, (line,), _ = run([text], "--model", name)
    assert (code, line["valid"], line["operations"]) == (0, True, 0)


def test_locks_look_past_reads_and_writes_and_each_lock_is_its_own(run):
    text = lines(
        (0, "invoke", "acquire", {"lock": "a"}),
        (0, "ok", "acquire", {"lock": "a"}),
        (1, "invoke", "acquire", {"lock": "b"}),
        (1, "ok", "acquire", {"lock": "b"}),
        (1, "invoke", "write", {"resource": "r"}),
        (1, "fail", "write", {"resource": "r"}),
    )
    assert run([text], "--model", "owner-mutex")[0] == 0
    assert run([text.replace('"b"', '"a"')], "--model", "owner-mutex")[0] == 1


@pytest.mark.parametrize(("name", "text"), [("valid", GOOD), ("invalid", STALE)])
def test_the_page_is_one_file_that_asks_for_nothing_else(run, tmp_path, name, text):
    out = tmp_path / "page.html"
    run(
        [text.replace("register", "</script>")],
        "--model",
        "register",
        "--init",
        "0",
        "--html",
        str(out),
    )
    page = out.read_text()
    data = json.loads(page.split('id="data">')[1].split("</script>")[0])
    assert data["valid"] is (name == "valid")
    assert len(data["objects"][0]["ops"]) == 2
    assert "http" not in page.replace("http://www.w3.org/2000/svg", "")
    assert run([GOOD, GOOD], "--model", "register", "--html", str(out))[0] == 254


def test_it_runs_as_a_module_with_nothing_but_the_standard_library(tmp_path):
    (tmp_path / "history").write_text(STALE)
    program = (
        "import sys\n"
        "from fencepost.checker.lincheck.command import main\n"
        "code = main(sys.argv[1:])\n"
        "own = {m.split('.')[0] for m in sys.modules} - set(sys.stdlib_module_names)\n"
        "print({m for m in own if not m.startswith('_')} - {'fencepost'}, file=sys.stderr)\n"
        "sys.exit(code)\n"
    )
    done = subprocess.run(
        [
            sys.executable,
            "-S",
            "-c",
            program,
            str(tmp_path / "history"),
            "--model",
            "register",
            "--init",
            "0",
        ],
        cwd=Path(__file__).parents[3] / "src",
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    assert done.stderr.strip() == "set()"


def test_objects_spread_over_processes_have_the_same_verdict(monkeypatch):
    monkeypatch.setattr("fencepost.checker.lincheck.verdict.SPREAD_AFTER_S", -1)
    for spoil in (0, 1):
        events = []
        for lock in range(6):
            for event in history(Random(lock), SUBJECTS["owner-mutex"], 20, spoil=spoil):
                process = event["process"] + 100 * lock
                events.append({**event, "process": process, "value": {"lock": lock}})
        monkeypatch.setattr("fencepost.processors.count", lambda: 2)
        spread = check(events, "owner-mutex", fast=False).valid
        monkeypatch.setattr("fencepost.processors.count", lambda: 1)
        assert check(events, "owner-mutex", fast=False).valid is spread is (not spoil)


def test_an_interrupted_check_reports_that_and_has_no_verdict(monkeypatch, capsys):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("fencepost.checker.lincheck.command._file", interrupt)
    assert main(["--model", "register", "some file"]) == 130
    said = capsys.readouterr()
    assert said.out == ""
    assert "interrupted" in said.err


@pytest.mark.parametrize("name", ["standard output", "/dev/full"])
def test_a_full_disk_is_reported_with_the_name_of_what_could_not_be_written(
    name, tmp_path, monkeypatch, capsys
):
    (tmp_path / "history").write_text(GOOD)
    page = ["--html", name] if name == "/dev/full" else []
    full = open("/dev/full", "w")  # noqa: SIM115 - closing it fails too
    monkeypatch.setattr(sys, "stdout", full)
    assert main([str(tmp_path / "history"), "--model", "register", *page]) == 254
    assert f"{name}: cannot be written: No space left on device" in capsys.readouterr().err
    with pytest.raises(OSError) if not page else nullcontext():
        full.close()
