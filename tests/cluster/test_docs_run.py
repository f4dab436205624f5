"""The commands of docs/ci.md and docs/api.md run, and so do the action's own steps."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests import snippets
from tests.cluster.healed import healed

ROOT = Path(__file__).parents[2]


pytestmark = [pytest.mark.usefixtures("kept_up"), pytest.mark.long]


@pytest.mark.parametrize("page", ["api", "ci"])
def test_every_snippet_of_a_page_can_be_typed(page, tmp_path):
    # A page may claim that nothing is left.
    assert healed()[0] == 0
    found = snippets.of(ROOT / "docs" / f"{page}.md")
    assert len(found) >= 4
    for snippet in found:
        snippets.carry_out(snippet, tmp_path)


def test_the_action_s_steps_leave_a_summary_results_and_a_badge(tmp_path):
    script = snippets.step_of_the_action("test")
    mylock = next(one for one in snippets.of(ROOT / "docs" / "ci.md") if one.file == "mylock.py")
    snippets.carry_out(mylock, tmp_path)
    bin = tmp_path / "fencepost" / "bin"
    bin.mkdir(parents=True)
    (bin / "fencepost").write_text(f'#!/bin/sh\nexec {sys.executable} -m fencepost "$@"\n')
    (bin / "fencepost").chmod(0o755)
    summary, output = tmp_path / "summary.md", tmp_path / "output"
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script],
        cwd=tmp_path,
        env=os.environ
        | {
            "PYTHONPATH": str(ROOT / "src"),
            "RUNNER_TEMP": str(tmp_path),
            "GITHUB_STEP_SUMMARY": str(summary),
            "GITHUB_OUTPUT": str(output),
            "TEST": "mylock.py:MyLock --servers redis:1 --ttl '1s'",
            "TIME": "5s",
            "SEED": "7",
            "FAIL_ON": "service",
        },
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert output.read_text() == "exit-code=0\n"
    assert "| Did the lock service keep its promise? |" in summary.read_text()
    results = tmp_path / "fencepost-results"
    assert ElementTree.parse(results / "junit.xml").getroot().find("testsuite") is not None
    assert ">valid<" in (results / "badge.svg").read_text()
    assert list(results.glob("MyLock/*Z/report.html"))
