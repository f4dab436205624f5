"""A run has a folder of its own, and its files are whole."""

from __future__ import annotations

import json
import os
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from fencepost.atomic_write import replace
from fencepost.harness.errors import BadArguments, Crashed
from fencepost.harness.results import results


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("FENCEPOST_RESULTS", str(tmp_path / "results"))
    return tmp_path / "results"


def finished(test):
    run = results.create(test)
    results.write(run / "test.json", {"name": test})
    return run


def test_a_new_run_has_an_empty_folder_of_its_own(folder):
    one, two = results.create("redlock"), results.create("redlock")
    assert one != two
    assert one.parent == two.parent == folder / "redlock"
    assert list(one.iterdir()) == []


def test_latest_is_the_newest_run_of_a_test_and_of_all(folder):
    one, two = results.create("redlock"), results.create("redis")
    assert (folder / "redlock" / "latest").resolve() == one.resolve()
    assert (folder / "latest").resolve() == two.resolve()
    three = results.create("redlock")
    assert (folder / "redlock" / "latest").resolve() == three.resolve()
    assert (folder / "latest").resolve() == three.resolve()


def test_the_links_are_relative_so_that_the_folder_can_be_moved(folder, tmp_path):
    run = finished("redlock")
    folder.rename(tmp_path / "moved")
    assert json.loads((tmp_path / "moved" / "latest" / "test.json").read_text())["name"]
    assert not (tmp_path / "moved" / "latest").readlink().is_absolute()
    assert (tmp_path / "moved" / "redlock" / "latest").resolve().name == run.name


def test_a_folder_that_cannot_be_made_is_a_crash_that_names_it(folder):
    folder.write_text("a file is in the way")
    with pytest.raises(Crashed, match=r"redlock/.* cannot be made: Not a directory"):
        results.create("redlock")


def test_json_is_read_as_it_was_written_and_leaves_no_other_file(tmp_path):
    results.write(tmp_path / "test.json", {"a": [1, "ü", None]})
    assert results.read_test(tmp_path) == {"a": [1, "ü", None]}
    assert [path.name for path in tmp_path.iterdir()] == ["test.json"]


@pytest.mark.parametrize("content", [None, "{torn"])
def test_json_that_cannot_be_read_is_bad_arguments_that_name_the_file(tmp_path, content):
    path = tmp_path / "results.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(BadArguments, match=r"results\.json cannot be (read|used)"):
        results.read(tmp_path)


def test_many_writers_of_one_file_do_not_disturb_each_other(tmp_path, folder):
    """Threads share a pid, so names that differ between threads also differ between processes."""
    path, writers, each = tmp_path / "results.json", 8, 25
    together = threading.Barrier(writers)

    def write(number):
        together.wait()
        for n in range(each):
            results.write(path, {"writer": number, "n": n})
            results.create("redlock")
            assert json.loads(path.read_bytes())["n"] < each

    with ThreadPoolExecutor(writers) as pool:
        for one in [pool.submit(write, number) for number in range(writers)]:
            one.result()
    assert [one.name for one in tmp_path.iterdir() if one.is_file()] == ["results.json"]
    assert (folder / "latest").resolve().parent == folder / "redlock"


def test_a_file_that_could_not_be_written_whole_is_as_it_was(tmp_path):
    path = tmp_path / "results.json"
    path.write_text("the old one")

    def torn():
        yield b"{"
        raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space left"):
        replace(path, torn())
    assert path.read_text() == "the old one"
    assert list(tmp_path.iterdir()) == [path]


def test_a_written_file_is_on_the_disk_with_its_name(tmp_path, monkeypatch):
    synced = []
    sync = os.fsync
    monkeypatch.setattr(
        os, "fsync", lambda fd: (synced.append(os.readlink(f"/proc/self/fd/{fd}")), sync(fd))
    )
    results.write(tmp_path / "test.json", {})
    first, second = synced
    assert first.startswith(f"{tmp_path}/.test.json.")
    assert second == str(tmp_path)


def test_results_with_many_faults_have_no_white_space_and_say_the_same(tmp_path, monkeypatch):
    content = {"faults": [{"fault": f"pause-{n}", "targets": ["redis-1"]} for n in range(20)]}
    results.write(tmp_path / "short.json", content)
    monkeypatch.setattr(results, "_LAID_OUT", 10)
    results.write(tmp_path / "long.json", content)
    short, long = (tmp_path / name for name in ("short.json", "long.json"))
    assert json.loads(short.read_text()) == json.loads(long.read_text()) == content
    assert short.read_text().count("\n") > 20
    assert long.read_text().count("\n") == 1
