"""Files are written whole, and what killed writers left is removed."""

from __future__ import annotations

import os
import time

import pytest

from fencepost.atomic_write import beside, replace


def left(path, age_s):
    scratch = beside(path)
    scratch.write_text("half")
    then = time.time() - age_s
    os.utime(scratch, (then, then))
    return scratch


def test_what_a_killed_writer_left_is_removed_later(tmp_path):
    path = tmp_path / "results.json"
    old, new = left(path, 7200), left(path, 1)
    other = left(tmp_path / "test.json", 7200)
    site = tmp_path / ".results.json.7-aa"
    site.mkdir()
    (site / "index.html").write_text("half")
    os.utime(site, (0, 0))
    replace(path, [b"{}"])
    assert path.read_bytes() == b"{}"
    assert (old.exists(), new.exists(), other.exists(), site.exists()) == (False, True, True, False)


def test_an_error_names_the_file_and_not_the_temporary_one(tmp_path):
    path = tmp_path / "results.json"
    path.mkdir()
    with pytest.raises(IsADirectoryError) as error:
        replace(path, [b"x"])
    assert (error.value.filename, list(tmp_path.iterdir())) == (str(path), [path])
