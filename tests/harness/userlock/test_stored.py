"""A run of a user lock stores the shipped files, and can be repeated from them."""

from __future__ import annotations

import io
import json
import tarfile
from dataclasses import replace

import pytest

from fencepost import runfiles
from fencepost.harness.errors import BadArguments
from fencepost.harness.judge.judge import judge
from fencepost.harness.results import results
from fencepost.harness.spec import from_arguments
from fencepost.harness.spec.make import lock_options
from fencepost.harness.userlock.resolve import LockRequest, resolve
from fencepost.harness.userlock.user_lock import OWN
from fencepost.report.words.settings import again
from tests.harness.disturbed import SPEC, carried_out

TEXT = "class MyLock:\n    def __init__(self, servers, **options): ...\n"


@pytest.fixture
def spec(tmp_path, monkeypatch):
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    (tmp_path / "work" / "mylock.py").write_text(TEXT)
    name, own = resolve("mylock.py:MyLock", LockRequest("redis:1"))
    options = lock_options(name, {"wait": "2", "fair": "true", "key": "k:"}, own)
    return replace(SPEC, name=name, lock=name, options=options, own=own)


def test_its_options_are_parsed_by_their_form(spec):
    assert dict(spec.options) == {"wait": 2, "fair": True, "key": "k:"}


def test_its_files_go_to_every_client_and_into_the_run(cluster, spec, tmp_path):
    ended = carried_out(cluster, spec)
    assert (ended.folder / "own" / "mylock.py").read_text() == TEXT
    unpacked = [call.node for call in cluster.calls if f"-C {OWN}" in call.what]
    assert sorted(unpacked) == ["client-1", "client-2"]
    with tarfile.open(fileobj=io.BytesIO(spec.own.kept(tmp_path / "copy").archive())) as tar:
        assert tar.getnames() == ["mylock.py"]


def lasting(ended):
    """Return the run, as if it had been long enough to be asked for."""
    test = json.loads((ended.folder / "test.json").read_text())
    (ended.folder / "test.json").write_text(json.dumps(test | {"time_s": 5.0}))
    return str(ended.folder)


def test_it_is_described_and_run_again_from_its_run_alone(cluster, spec, tmp_path):
    ended = carried_out(cluster, spec)
    (tmp_path / "work" / "mylock.py").unlink()
    test = json.loads((ended.folder / "test.json").read_text())
    assert test["lock"]["own"] == {
        "servers": "redis:1",
        "ends_with": "lease",
        "python": "mylock.py:MyLock",
    }
    assert again(test, ended.folder).startswith("fencepost test --replay MyLock/")
    once_more, schedule = from_arguments.replayed(lasting(ended), "", {"wait": "5"}, ())
    assert once_more == replace(
        spec,
        options={**spec.options, "wait": 5},
        store="redis",
        time_s=5.0,
        nemesis=once_more.nemesis,
        own=once_more.own,
    )
    assert once_more.own.files == {"mylock.py": ended.folder.resolve() / "own" / "mylock.py"}
    assert [fault.family for fault in schedule] == ["pause", "pause"]


def test_another_lock_can_replace_it_in_a_replay(cluster, spec, tmp_path):
    ended = carried_out(cluster, spec)
    (tmp_path / "work" / "mended.py").write_text(TEXT)
    name, mended = resolve("mended.py:MyLock", LockRequest("redis:1"))
    once_more, _ = from_arguments.replayed(lasting(ended), name, {}, (), mended)
    assert once_more.own.python == "mended.py:MyLock"
    assert from_arguments.replayed(lasting(ended), "redis", {}, ())[0].own is None


def test_its_grants_show_whether_it_has_tokens(cluster, spec):
    ended = carried_out(cluster, spec)
    test = results.read_test(ended.folder)
    assert test["lock"]["token"] is False
    assert test["not_checked"]["fencing"] == "the lock issues no token"
    assert "fencing" not in ended.results["checkers"]

    asked = runfiles.test(ended.folder / "test.json")
    assert asked["lock"]["token"] == "unknown" and "fencing" in asked["checkers"]
    (ended.folder / "run.json").unlink()
    history = (ended.folder / "history.jsonl").read_text()
    (ended.folder / "history.jsonl").write_text(history.replace('"token":null', '"token":7'))
    assert judge(ended.folder).verdicts["fencing"].valid is False


@pytest.mark.parametrize(
    ("own", "why"),
    [
        ({"servers": "redis:1", "ends_with": "lease", "python": "../x.py:X"}, r"has no \.\./x\.py"),
        ({"servers": "redis:1", "ends_with": "lease", "python": "gone.py:X"}, r"has no gone\.py"),
        ({"servers": "redis:9", "ends_with": "lease", "python": "mylock.py:X"}, "with N from 1 to"),
        ({"servers": "redis:1", "ends_with": "x", "python": "mylock.py:X"}, "Invalid enum value"),
        (
            {"servers": "redis:1", "ends_with": "lease"},
            "lock.own must have either `python` or `program`",
        ),
        ({}, "missing required field `servers`"),
    ],
)
def test_an_imported_run_is_checked_against_the_limits_of_a_lock(cluster, spec, own, why):
    ended = carried_out(cluster, spec)
    test = json.loads((ended.folder / "test.json").read_text())
    test["lock"]["own"] = own
    (ended.folder / "test.json").write_text(json.dumps(test))
    with pytest.raises(BadArguments, match=why):
        from_arguments.replayed(str(ended.folder), "", {}, ())
