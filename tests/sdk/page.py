"""The locks of docs/your-lock.md in other languages, built by the page's own commands."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from fencepost.harness.command.sdk import sdk

PAGE = Path(__file__).parents[2] / "docs" / "your-lock.md"
FILES = {
    "go": "main.go",
    "javascript": "build/worker.js",
    "java": "{name}.java",
    "rust": "main.rs",
    "csharp": "MyLock.cs",
}
_NEEDS = {"go": "go", "javascript": "node", "java": "javac", "rust": "rustc", "csharp": "mcs"}


def build(
    language: str, folder: Path, monkeypatch: pytest.MonkeyPatch, page: Path = PAGE
) -> dict[str, str]:
    """Build it in a folder, which becomes the current one.

    Return the options of the page's `fencepost test` for it.
    """
    if shutil.which(_NEEDS[language]) is None:
        pytest.skip(f"{_NEEDS[language]} is not installed")
    text = page.read_text(encoding="utf-8")
    _, snippet, rest = re.split(rf"```{language}\n(.*?)```\n", text, maxsplit=1, flags=re.DOTALL)
    shown = re.findall(r"(?m)^    (.*)$", rest.split("\n###")[0])
    place = next(at for at, line in enumerate(shown) if line.startswith("fencepost test "))
    # Hunts have tests of their own (tests/hunt/live). The lines after the test may be output.
    commands, test = [one for one in shown[:place] if "fencepost hunt" not in one], shown[place]
    monkeypatch.chdir(folder)
    (folder / "build").mkdir()
    named = re.search(r"final class (\w+) implements Fencepost", snippet)
    file = FILES[language].format(name=named and named[1])
    (folder / file).write_text(snippet)
    for command in commands:
        words = shlex.split(command)
        if words[:2] == ["fencepost", "sdk"]:
            sdk(words[2], Path(words[4]) if len(words) > 3 else Path())
        else:
            subprocess.run(command, shell=True, check=True, capture_output=True)
    said, *words = shlex.split(test)
    assert (said, words.pop(0)) == ("fencepost", "test")
    words = [word for word in words if word != "--elector"]
    return dict(zip(words[::2], words[1::2], strict=True))
