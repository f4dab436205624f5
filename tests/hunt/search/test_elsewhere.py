"""A hunt runs on a Python without POSIX modules: see without_posix.py."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
HERE = Path(__file__).parents[1]
SRC = HERE.parents[1] / "src"


def fencepost(*words, **environment):
    return subprocess.run(
        [sys.executable, str(HERE / "without_posix.py"), *words],
        env={**os.environ, "PYTHONPATH": str(SRC), **environment},
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize("lock", ["redlock", "redis-py"])
def test_a_hunt_needs_nothing_that_windows_does_not_have(tmp_path, lock):
    words = ["hunt", lock, "--faults", "clock", "--seed", "1", "--processes", "2"]
    done = fencepost(*words, FENCEPOST_RESULTS=str(tmp_path))
    assert "ModuleNotFoundError" not in done.stderr + done.stdout
    assert "AttributeError" not in done.stderr + done.stdout
    assert done.returncode == 1, done.stderr
    assert "Found after" in done.stdout
    assert list(tmp_path.glob(f"hunt-{lock}/*/schedule.json"))


def test_a_command_that_needs_a_cluster_names_the_missing_module():
    done = fencepost("cluster", "status")
    assert done.returncode == 255
    assert "needs Linux or macOS" in done.stderr
    assert "Traceback" not in done.stderr
