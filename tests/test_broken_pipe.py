"""The exit code is the verdict's even if the reader of the output stops early."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

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
        return process.wait(60)


@pytest.mark.parametrize(("read", "code"), [(1, 0), (2, 1)])
def test_the_exit_code_is_the_verdict_s_when_the_output_pipe_is_closed(tmp_path, read, code):
    last = {"process": 1, "type": "ok", "f": "read", "value": read}
    path = tmp_path / "history.jsonl"
    path.write_text("".join(json.dumps(event) + "\n" for event in [*EVENTS, last]))
    assert without_reader("lincheck", "--model", "register", str(path)) == code


def test_bad_arguments_exit_with_254_when_the_output_pipe_is_closed():
    assert without_reader("analyze", "/no/such/run") == 254
    assert without_reader("lincheck", "--model", "register", "/no/such/file") == 254


def test_an_interrupted_lincheck_says_so_and_is_no_verdict(tmp_path):
    pipe = tmp_path / "endless"
    os.mkfifo(pipe)
    words = ("lincheck", "--model", "register", "--format", "jsonl", str(pipe))
    with (
        command(*words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process,
        pipe.open("w"),  # it waits for the first event after this opens
    ):
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, "")
    assert "interrupted" in err
    assert "Traceback" not in err
