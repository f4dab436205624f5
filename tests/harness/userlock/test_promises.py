"""A user lock promises more than exclusion: by an option, by its class, or by its program."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

import fencepost
from fencepost.harness.api import session
from fencepost.harness.errors import BadArguments
from fencepost.harness.hunting.hunts import described as described_hunt
from fencepost.harness.results import results
from fencepost.harness.spec.respec import respec
from fencepost.harness.userlock.resolve import LockRequest, resolve
from fencepost.harness.userlock.user_lock import from_json
from fencepost.workloads.contract.locktype import PROMISES
from tests.harness.disturbed import SPEC, carried_out
from tests.harness.userlock.test_project import described, here, run  # noqa: F401

TEXT = """
class Plain:
    def __init__(self, servers): ...

class Queue(Plain):
    promises = ("minority", "fifo")

class Fair(Queue): ...
"""
BUNDLE = """
from fencepost.workloads.locks.broken import NoLock
from fencepost.workloads.contract.locktype import LockType
LOCK = LockType(name="mine", what="", make=NoLock, servers=1, promises={"fifo": True})
"""


@pytest.fixture(autouse=True)
def files(here):  # noqa: F811
    (here / "mylock.py").write_text(TEXT)
    (here / "bundled.py").write_text(BUNDLE)
    return here


def promised(lock, given="", servers="redis:1"):
    name, own = resolve(lock, LockRequest(servers, promises=given))
    return dict(own.lock_type(name, {}).promises)


def test_an_option_or_a_list_names_the_promises_of_a_class():
    assert promised("mylock.py:Plain") == {}
    assert promised("mylock.py:Plain", "fifo, true_refusals") == {
        "fifo": True,
        "true_refusals": True,
    }
    assert promised("mylock.py:Plain", ["reentrant"]) == {"reentrant": True}


def test_a_class_names_its_own_and_those_of_its_base_in_the_same_file():
    assert promised("mylock.py:Queue") == {"minority": True, "fifo": True}
    assert promised("mylock.py:Fair") == {"minority": True, "fifo": True}


@pytest.mark.parametrize(
    ("lock", "servers"), [("mylock.py:Queue", "redis:1"), ("bundled.py:LOCK", "")]
)
def test_an_option_replaces_the_promises_of_a_class_and_of_a_bundle(lock, servers):
    assert promised(lock, "", servers)["fifo"] is True
    assert promised(lock, "one_wakeup", servers) == {"one_wakeup": True}
    assert promised(lock, "none", servers) == {}


def test_an_unknown_promise_is_refused_with_the_list(files):
    valid = ", ".join(PROMISES)
    with pytest.raises(BadArguments, match=f"no promise 'fifa'; choose one of: {valid}.*fifo"):
        promised("mylock.py:Plain", "fifa")
    (files / "mylock.py").write_text(TEXT.replace('"fifo"', '"fast"'))
    with pytest.raises(BadArguments, match=r"mylock\.py:Queue: there is no promise 'fast'"):
        promised("mylock.py:Queue")


@pytest.mark.parametrize("value", ["names()", "(FIFO,)", "3", "[1]"])
def test_a_class_must_write_its_promises_as_names(files, value):
    (files / "mylock.py").write_text(TEXT.replace('("minority", "fifo")', value))
    with pytest.raises(BadArguments, match="`promises` of class Queue must be written as names"):
        promised("mylock.py:Queue")


def test_the_promises_of_a_registered_lock_are_known():
    with pytest.raises(BadArguments, match="the promises of redis are known: `fencepost locks`"):
        resolve("redis", LockRequest(promises="fifo"))


def test_the_command_line_decides_then_the_project_s_file_then_the_class(files, described):  # noqa: F811
    toml = 'lock = "mylock.py:Queue"\nservers = "redis:1"\n'
    (files / "fencepost.toml").write_text(toml)
    assert described("test").to_json()["promises"] == {"minority": True, "fifo": True}
    (files / "fencepost.toml").write_text(toml + 'promises = ["one_wakeup", "reentrant"]\n')
    for command in ("test", "check"):
        said = described(command).to_json()["promises"]
        assert said == {"one_wakeup": True, "reentrant": True}
    assert described("test", "--promises", "fifo").to_json()["promises"] == {"fifo": True}


def test_they_are_stored_with_the_run_and_repeated(files, described):  # noqa: F811
    spec = described("test", "mylock.py:Plain", "--servers", "redis:1", "--promises", "fifo")
    row = spec.to_json()
    assert row["lock"]["own"]["promises"] == ["fifo"]
    (files / "own").mkdir()
    (files / "own" / "mylock.py").write_text(TEXT)
    assert respec(json.loads(json.dumps(row)), files).to_json()["promises"] == {"fifo": True}
    del row["lock"]["own"]["promises"]  # of an older version
    assert from_json(row["lock"]["own"], files).promises is None


def test_the_python_api_passes_them_on(monkeypatch):
    specs = []
    monkeypatch.setattr(session.Session, "_ready", lambda self, spec: specs.append(spec))
    monkeypatch.setattr(
        session, "carry_out", lambda *_, **__: (_ for _ in ()).throw(BadArguments("enough"))
    )
    with pytest.raises(BadArguments, match="enough"):
        fencepost.run("mylock.py:Plain", servers="redis:1", promises=["fifo", "minority"])
    assert specs[0].to_json()["promises"] == {"minority": True, "fifo": True}


def test_a_hunt_simulates_them_and_names_them_in_its_command():
    hunt = described_hunt(
        "mylock.py:Plain", {}, {"seed": 1}, servers="redis:1", promises=("fifo", "true_refusals")
    )
    kept = {name for name in ("fifo", "true_refusals", "minority") if hunt.setting.promises(name)}
    assert kept == {"fifo", "true_refusals"}
    assert "--promises fifo,true_refusals" in hunt.again()


def program(here):  # noqa: F811
    (here / "ship").mkdir(exist_ok=True)
    (here / "ship" / "worker").touch(mode=0o755)
    name, own = resolve("", LockRequest("redis:1", program="./worker", ship=here / "ship"))
    return replace(SPEC, name=name, lock=name, options={}, own=own)


def test_a_program_names_them_when_it_is_ready(files, cluster):
    cluster.service.names = ["one_wakeup", "fifo"]
    spec = program(files)
    ended = carried_out(cluster, spec)
    test = results.read_test(ended.folder)
    assert test["promises"] == {"fifo": True, "one_wakeup": True}
    assert test["lock"]["own"]["promises"] == ["fifo", "one_wakeup"]
    assert test["lock"]["token"] is False
    asked = json.loads((ended.folder / "test.json").read_text())
    assert (asked["promises"], asked["lock"]) == ({}, spec.to_json()["lock"])


def test_an_option_replaces_what_a_program_names(files, cluster):
    cluster.service.names = ["fifo"]
    spec = program(files)
    ended = carried_out(cluster, replace(spec, own=replace(spec.own, promises=())))
    assert json.loads((ended.folder / "test.json").read_text())["promises"] == {}


def test_a_program_that_names_no_promise_ends_the_run_with_the_list(files, cluster):
    cluster.service.names = ["fast"]
    ended = carried_out(cluster, program(files))
    assert "./worker is ready, and there is no promise 'fast'; choose one of: mi" in str(
        ended.error
    )


@pytest.mark.slow
def test_a_long_run_has_the_promises_that_its_segments_learned(files, cluster, monkeypatch):
    spec = replace(program(files), time_s=0.2, segment_s=0.1)
    cluster.service.names = ["fifo"]
    ended = carried_out(cluster, spec, None)
    for folder in (ended.folder, ended.folder / "segments" / "0001"):
        assert results.read_test(folder)["promises"] == {"fifo": True}
