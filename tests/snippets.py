"""Run the commands and snippets of a page in docs/ in their order.

A fenced block is `python file=NAME` (it is written to a file), `python` or `sh` (it is run, and
must end with 0), or something else that is only shown.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

_ROOT = Path(__file__).parents[1]
_BLOCK = re.compile(r"^```(\S+)(?: file=(\S+))?\n(.*?)^```$", re.M | re.S)


class Snippet(NamedTuple):
    language: str
    file: str
    text: str


def of(page: Path) -> list[Snippet]:
    return [Snippet(*found) for found in _BLOCK.findall(page.read_text(encoding="utf-8"))]


def step_of_the_action(name: str) -> str:
    """Return the script of a step of action.yml."""
    action = (_ROOT / "action.yml").read_text(encoding="utf-8")
    step = re.search(rf"    - name: {name}\n.*?      run: \|\n(.*?)\n    - name", action, re.S)
    assert step
    return "".join(line[8:] + "\n" for line in step.group(1).splitlines())


def carry_out(snippet: Snippet, folder: Path) -> str:
    """Write or run the snippet in a folder; return its output. Raise AssertionError if it fails."""
    if snippet.file:
        (folder / snippet.file).write_text(snippet.text)
        return ""
    words = {"python": [sys.executable, "-c"], "sh": ["bash", "-euo", "pipefail", "-c"]}
    if snippet.language not in words:
        return ""
    own = Path(sys.executable).parent
    done = subprocess.run(
        [*words[snippet.language], snippet.text],
        cwd=folder,
        env=os.environ | {"PATH": f"{own}:{os.environ['PATH']}", "PYTHONPATH": _path()},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, f"{snippet.text}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def _path() -> str:
    return str(Path(__file__).parents[1] / "src")
