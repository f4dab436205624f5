"""`fencepost sdk` writes the file of a language, and overwrites no other file."""

from __future__ import annotations

from pathlib import Path

import pytest

from fencepost.harness.command.sdk import FILES, sdk
from fencepost.harness.errors import BadArguments

SDK = Path(__file__).parents[3] / "sdk"


def test_every_sdk_is_a_file_by_its_language():
    there = {path.parent.name: path.name for path in SDK.glob("*/*") if path.is_file()}
    assert there == FILES


@pytest.mark.parametrize("language", FILES)
def test_its_file_is_written_and_may_be_written_again(tmp_path, language, capsys):
    for _ in range(2):
        sdk(language, tmp_path / "new")
    (written,) = (tmp_path / "new").iterdir()
    assert written.read_bytes() == (SDK / language / FILES[language]).read_bytes()
    assert str(written) in capsys.readouterr().out


def test_a_file_that_is_another_stays(tmp_path):
    (tmp_path / "fencepost.go").write_text("package mine")
    with pytest.raises(BadArguments, match="exists with other content: move it away first"):
        sdk("go", tmp_path)
    assert (tmp_path / "fencepost.go").read_text() == "package mine"


def test_a_language_without_one_is_refused_with_those_that_have_one():
    with pytest.raises(BadArguments, match=r"no SDK for 'cobol'; choose one of: csharp, go, java"):
        sdk("cobol")
