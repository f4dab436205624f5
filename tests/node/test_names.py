"""Names in /etc/hosts: others' lines stay byte by byte, and no reader sees half a file."""

from __future__ import annotations

import errno
import os
import stat

import pytest

from fencepost.node import names

OTHERS = b"127.0.0.1 localhost\n\n# a comment # fencepost is tested here\n10.0.0.9\tdb db.lab\r\n"
ENTRIES = ["10.0.0.1 redis-1", "10.0.0.2 storage"]
OURS = b"10.0.0.1 redis-1 # fencepost\n10.0.0.2 storage # fencepost\n"


@pytest.fixture
def file(tmp_path, monkeypatch):
    path = tmp_path / "hosts"
    path.write_bytes(OTHERS)
    path.chmod(0o640)
    monkeypatch.setattr(names, "ETC_HOSTS", str(path))
    return path


@pytest.fixture(params=["replaced", "in place"])
def way(request, monkeypatch):
    """As on a host, and as in a container, where the file is a mount."""

    def busy(*_):
        raise OSError(errno.EBUSY, "Device or resource busy")

    if request.param == "in place":
        monkeypatch.setattr(os, "rename", busy)
    return request.param


def test_names_are_added_and_taken_away_and_nothing_else_changes(file, way):
    given = [word for entry in ENTRIES for word in entry.split()]
    done = {"changed": True, "in_place": way == "in place"}
    for _ in range(2):
        assert names.command(["set", *given]) == done
        assert file.read_bytes() == OTHERS + OURS
        done = {"changed": False, "in_place": False}
    assert names.command(["set", "10.0.0.3", "client-1"])["changed"]
    assert file.read_bytes() == OTHERS + b"10.0.0.3 client-1 # fencepost\n"
    assert names.command(["clear"])["changed"]
    assert file.read_bytes() == OTHERS
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert os.listdir(file.parent) == ["hosts"]


def test_a_file_without_fencepost_s_names_is_not_written(file):
    before = file.stat()
    assert names.command(["clear"]) == {"changed": False, "in_place": False}
    after = file.stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_a_reader_that_has_the_file_open_keeps_the_whole_old_one(file):
    with file.open("rb") as reader:
        names.command(["set", "10.0.0.1", "redis-1"])
        assert reader.read() == OTHERS


@pytest.mark.parametrize("step", ["fsync", "rename", "chown"])
def test_a_write_that_fails_leaves_the_old_file_and_no_other(file, monkeypatch, step):
    def fail(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, step, fail)
    with pytest.raises(OSError, match="No space left"):
        names.command(["set", "10.0.0.1", "redis-1"])
    assert file.read_bytes() == OTHERS
    assert os.listdir(file.parent) == ["hosts"]


def test_a_last_line_without_an_end_stays_a_line_of_its_own(file):
    file.write_bytes(b"127.0.0.1 localhost")
    names.command(["set", "10.0.0.1", "redis-1"])
    assert file.read_bytes() == b"127.0.0.1 localhost\n10.0.0.1 redis-1 # fencepost\n"
