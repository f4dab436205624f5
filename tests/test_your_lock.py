"""The tutorial in docs/your-lock.md contains the code that its test on real servers runs."""

from __future__ import annotations

import runpy
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_every_step_of_the_tutorial_is_found_and_its_files_are_python():
    page = runpy.run_path(str(ROOT / "tests" / "cluster" / "test_your_lock.py"))
    steps = page["STEP"].findall(page["PAGE"])
    assert [kind for kind, *_ in steps] == ["file", "run", "file", "run", "run", "file", "run"]
    for kind, about, block, command in steps:
        if kind == "file":
            compile(block, about, "exec")
            assert "class MyLock:" in block
        else:
            assert command.startswith("fencepost ")
            assert about.startswith("exit ")
