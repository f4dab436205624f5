"""The files of `--junit`, `--summary` and `--badge`: what cannot be written is refused."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fencepost.harness.command.files import Files
from fencepost.harness.errors import BadArguments, Crashed
from tests.full_disk import no_file_may_grow
from tests.fuzz import odd

HELD = {"a FIFO", "a socket", "a folder", "a link to itself", "a link to /dev/zero", "a device"}


def text(words):
    return lambda: words.encode()


@pytest.mark.parametrize("option", ["junit", "summary", "badge"])
@pytest.mark.parametrize("kind", sorted(HELD))
def test_a_file_that_is_not_regular_is_refused_with_its_option(tmp_path, kind, option):
    if kind == "a device" and os.geteuid() != 0:
        pytest.skip("only root can make a device")
    path = tmp_path / "given"
    odd.ODD[kind](path)
    with pytest.raises(BadArguments, match=f"^--{option}: {path} cannot be written: "):
        Files(**{option: path}).must_be_writable()


def test_a_full_device_is_refused_before_the_run():
    with pytest.raises(BadArguments, match="/dev/full cannot be written: it is not a regular file"):
        Files(junit=Path("/dev/full")).must_be_writable()


def test_a_pipe_that_has_a_reader_is_refused_too(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    try:
        with pytest.raises(BadArguments, match="it is not a regular file"):
            Files(junit=tmp_path / "pipe").must_be_writable()
    finally:
        os.close(reader)


def test_a_name_that_the_system_cannot_have_is_refused(tmp_path):
    with pytest.raises(BadArguments, match=r"--badge: .*null byte"):
        Files(badge=tmp_path / "a\0b").must_be_writable()


def test_a_summary_is_appended_and_other_files_are_replaced(tmp_path):
    files = Files(tmp_path / "a" / "junit", tmp_path / "summary", tmp_path / "badge")
    files.must_be_writable()
    for words in ("first one", "second"):
        files.write(junit=text(words), summary=text(words), badge=text(words))
    found = [path.read_text() for path in (files.junit, files.summary, files.badge)]
    assert found == ["second", "first onesecond", "second"]


def test_nothing_is_made_for_an_option_that_was_not_given(tmp_path):
    Files(Path(os.devnull)).write(junit=text("x"), badge=lambda: 1 / 0)


@pytest.mark.parametrize("to", ["a file", "a pipe"])
def test_standard_output_is_written_after_what_was_printed(tmp_path, to):
    code = (
        "from pathlib import Path; from fencepost.harness.command.files import Files\n"
        "files = Files(Path('/dev/stdout')); files.must_be_writable(); print('before')\n"
        "files.write(junit=lambda: b'junit, '); print('after')"
    )
    with (tmp_path / "log").open("w") as log:
        out = log if to == "a file" else subprocess.PIPE
        done = subprocess.run([sys.executable, "-c", code], stdout=out, text=True, check=True)
    assert (done.stdout or (tmp_path / "log").read_text()) == "before\njunit, after\n"


def test_all_files_are_tried_although_one_cannot_be_written(tmp_path):
    files = Files(tmp_path / "junit", tmp_path / "summary", tmp_path / "badge")
    files.must_be_writable()
    files.junit.unlink()
    os.mkfifo(files.junit)  # nothing reads it
    files.badge.unlink()
    files.badge.mkdir()
    with pytest.raises(Crashed) as told:
        files.write(junit=text("j"), summary=text("s"), badge=text("b"))
    assert files.summary.read_text() == "s"
    assert f"--junit: {files.junit} cannot be written: " in str(told.value)
    assert f"--badge: {files.badge} cannot be written: Is a directory" in str(told.value)


def test_the_error_of_the_run_is_not_replaced_by_that_of_a_file(tmp_path, capsys):
    files = Files(tmp_path)
    files.write_after(KeyboardInterrupt(), junit=text("j"))
    assert "fencepost: --junit: " in capsys.readouterr().err
    with pytest.raises(Crashed):
        files.write_after(None, junit=text("j"))


def test_a_disk_that_is_full_by_then_is_told_by_its_option(tmp_path):
    files = Files(tmp_path / "junit")
    files.must_be_writable()
    with no_file_may_grow(), pytest.raises(Crashed, match=r"--junit: .*junit cannot be written"):
        files.write(junit=text("x" * 100))
