"""Run code in processes that hash strings in different ways, and compare their output."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parents[1]
SRC = TESTS.parent / "src"


def assert_same_digest(code, *words):
    """Check that the code prints one and the same SHA-256 digest in each of them."""
    said = {
        subprocess.run(
            [sys.executable, "-c", code, *words],
            env={**os.environ, "PYTHONPATH": str(SRC), "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            cwd=TESTS,  # not the project's own folder, which has a hunt too
            check=True,
        ).stdout
        for seed in ("0", "1")
    }
    assert len(said) == 1
    assert len(said.pop().strip()) == hashlib.sha256().digest_size * 2
