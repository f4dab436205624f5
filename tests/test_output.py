"""The exit code is the verdict's whatever becomes of the output; no text controls a terminal."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from fencepost import output
from fencepost.harness.command import screen

ROOT = Path(__file__).parents[1]
EVENTS = [
    {"process": 0, "type": "invoke", "f": "write", "value": 1},
    {"process": 0, "type": "ok", "f": "write", "value": 1},
    {"process": 1, "type": "invoke", "f": "read", "value": None},
]


def command(*words, **kwargs):
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    return subprocess.Popen(
        [sys.executable, "-m", "fencepost", *words],
        env=environment,
        text=True,
        # A shell that runs the tests in the background may have set it to be ignored.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        **kwargs,
    )


def without_reader(*words):
    """Return the exit code of a command whose output goes to a closed pipe."""
    reader, writer = os.pipe()
    os.close(reader)
    with command(*words, stdout=writer, stderr=writer) as process:
        os.close(writer)
        return process.wait(120)


@pytest.fixture
def guarded(monkeypatch):
    """Return a function that guards a new standard output and returns what reaches its end."""

    def guard(encoding="utf-8"):
        raw = io.BytesIO()
        monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding, write_through=True))
        monkeypatch.setattr(sys, "stderr", sys.stdout)
        output.guard_output()
        return raw

    return guard


HOSTILE = "\x1b]52;c;ZXZpbA==\x07\x9b2J\u202etxt\r\x7f"
SHOWN = r"\u001b]52;c;ZXZpbA==\u0007\u009b2J\u202etxt\u000d\u007f"


def test_control_characters_are_printed_as_visible_escapes(guarded):
    raw = guarded()
    print(f"a\tb {HOSTILE}")
    assert raw.getvalue().decode() == f"a\tb {SHOWN}\n"


def test_escapes_within_json_decode_to_the_same_text():
    text = json.dumps(HOSTILE, ensure_ascii=False)
    assert json.loads(output.visible(text)) == json.loads(text)


@pytest.mark.parametrize("name", ["[bold]", "[/]", "list[str]", "[link=http://x]y", ":cat:"])
def test_markup_in_names_is_text(name, guarded):
    raw = guarded()
    table = screen.table("lock")
    table.add_row(name)
    screen.console().print(table)
    screen.write(name)
    assert raw.getvalue().decode().count(name) == 2


def test_a_terminal_gets_the_console_s_colours_and_no_control_characters_of_a_text(guarded):
    raw = guarded()
    console = type(screen.console())(force_terminal=True, highlight=False)
    console.print(HOSTILE, style="red")
    table = screen.table("lock", title=HOSTILE)
    table.add_row(HOSTILE)
    console.print(table)
    said = raw.getvalue().decode()
    assert said.startswith("\x1b[31m\\u001b]52")
    assert not {"\x07", "\x9b", "\u202e", "\r"} & set(said)
    assert "\x1b]" not in said


def test_output_that_a_user_lock_closes_or_removes_is_lost_and_raises_nothing(guarded):
    guarded()
    sys.stdout.close()
    print("x")
    sys.stdout.flush()
    assert "closed file" in output.lost()
    sys.stdout = None
    output.guard_output()
    sys.stdout.flush()


@pytest.mark.parametrize("encoding", ["ascii", "cp437", "latin-1"])
def test_a_character_that_the_terminal_lacks_is_replaced(encoding, guarded):
    raw = guarded(encoding)
    screen.write("a … b \udcff")
    assert raw.getvalue() == b"a ? b ?\n"


def test_a_full_disk_below_the_output_is_reported_and_raises_nothing(guarded):
    guarded()
    with Path("/dev/full").open("w") as full:
        sys.stdout = output._Visible(output._Lasting(full))
        print("x")
        sys.stdout.flush()
        assert output.lost() == "No space left on device"


@pytest.mark.slow
@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&- >&- 2>&-", ">/dev/full", ">/dev/full 2>&1"])
def test_no_code_is_that_of_an_invalid_run_because_of_closed_or_full_streams(closed, tmp_path):
    def code(words):
        line = f"{sys.executable} -m fencepost {words} {closed}"
        environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
        return subprocess.run(["bash", "-c", line], env=environment, cwd=tmp_path).returncode

    path = tmp_path / "history.jsonl"
    path.write_text("".join(json.dumps(event) + "\n" for event in EVENTS))
    assert code(f"lincheck --model register {path}") == (254 if "full" in closed else 0)
    assert code("explain nosuch") == 254
    assert code("--version") == 0
    assert code("ls") == (255 if "full" in closed else 0)


@pytest.mark.slow
@pytest.mark.parametrize("module", ["fencepost", "fencepost.checker.lincheck"])
def test_lincheck_says_that_its_answer_was_lost_on_a_full_disk(tmp_path, module):
    path = tmp_path / "history.jsonl"
    path.write_text("".join(json.dumps(event) + "\n" for event in EVENTS))
    words = ["lincheck"] * (module == "fencepost") + ["--model", "register", str(path)]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", module, *words],
            env=environment, stdout=full, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
    said = "standard output: cannot be written: No space left on device\n"
    assert (done.returncode, done.stderr) == (254, said)


@pytest.mark.slow
@pytest.mark.parametrize(("read", "code"), [(1, 0), (2, 1)])
def test_the_exit_code_is_the_verdict_s_when_the_output_pipe_is_closed(tmp_path, read, code):
    last = {"process": 1, "type": "ok", "f": "read", "value": read}
    path = tmp_path / "history.jsonl"
    path.write_text("".join(json.dumps(event) + "\n" for event in [*EVENTS, last]))
    assert without_reader("lincheck", "--model", "register", str(path)) == code


@pytest.mark.slow
def test_bad_arguments_exit_with_254_when_the_output_pipe_is_closed():
    assert without_reader("analyze", "/no/such/run") == 254
    assert without_reader("lincheck", "--model", "register", "/no/such/file") == 254


@pytest.mark.slow
def test_an_interrupted_lincheck_says_so_and_is_no_verdict(tmp_path):
    pipe = tmp_path / "endless"
    os.mkfifo(pipe)
    words = ("lincheck", "--model", "register", "--format", "jsonl", str(pipe))
    with (
        command(*words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process,
        pipe.open("w"),  # it waits for the first event after this opens
    ):
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=120)
    assert (process.returncode, out) == (130, "")
    assert "interrupted" in err
    assert "Traceback" not in err
