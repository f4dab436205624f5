"""Measures the steps of a short run: from the command to its verdict, and to its end.

    make bench-start                      10 s of a user lock on one Redis
    make bench-start ARGS='etcd --time 5' another one
    make bench-start ARGS=--pytest        pytest with three such tests, as a whole

The lock is what `fencepost init` writes. A run reports JSON lines (`--json`); each step is timed
from the line that begins it to the next. The target on a warm machine, whose nodes' image exists,
is 16 s to the verdict, and 45 s for pytest.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from fencepost.harness.package import PACKAGE

_LOCK = PACKAGE / "harness" / "userlock" / "templates" / "mylock.py.in"
_RUN = ("mylock.py:MyLock", "--servers", "redis:1", "--time", "10s", "--seed", "7")
_TESTS = """
import pytest
from mylock import MyLock

@pytest.mark.parametrize("seed", [1, 2, 3])
def test_my_lock(fencepost, seed):
    fencepost.run(MyLock, servers="redis:1", time="10s", seed=seed).assert_valid("service")
"""


def main() -> int:
    words = sys.argv[1:]
    if words in (["--help"], ["-h"]):
        print(__doc__)
        return 0
    with tempfile.TemporaryDirectory(prefix="fencepost-bench-") as folder:
        (Path(folder) / "mylock.py").write_text(_LOCK.read_text())
        os.environ["FENCEPOST_RESULTS"] = f"{folder}/results"
        # As an installed package is, and a checkout from its second command on: compiled.
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        if words == ["--pytest"]:
            return _pytest(Path(folder))
        return _run(words or list(_RUN), folder)


def _pytest(folder: Path) -> int:
    (folder / "test_mylock.py").write_text(_TESTS)
    began = time.monotonic()
    command = [sys.executable, "-m", "pytest", "-q", "--durations=0", "-p", "no:cacheprovider"]
    code = subprocess.run(command, cwd=folder, check=False).returncode
    print(f"{time.monotonic() - began:.1f} s for pytest with three tests of 10 s")
    return code


def _run(words: list[str], folder: str) -> int:
    began = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-m", "fencepost", "test", *words, "--json"],
        stdout=subprocess.PIPE,
        text=True,
        cwd=folder,
    )
    assert process.stdout is not None
    step, since, verdict_s = "the command starts", 0.0, None
    print(f"fencepost test {' '.join(words)}\n{'at':>7} {'took':>7}")
    for line in process.stdout:
        row, now = json.loads(line), time.monotonic() - began
        name = _step(row)
        if name == step:
            continue
        print(f"{since:7.2f} {now - since:7.2f}  {step}")
        step, since = name, now
        if row["event"] == "result":
            verdict_s, step = now, "the nodes are removed"
    process.wait()
    over = time.monotonic() - began
    print(f"{since:7.2f} {over - since:7.2f}  {step}")
    if verdict_s is not None:
        print(f"{verdict_s:.1f} s to the verdict, {over:.1f} s to the end")
    return process.returncode


def _step(row: dict[str, str]) -> str:
    match row["event"]:
        case "started":
            return "engine and image are looked for"
        case "said":
            return row["text"]
        case "progress":
            return row["phase"]
    return row["event"]


if __name__ == "__main__":
    sys.exit(main())
