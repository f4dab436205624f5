"""A user lock by --program: its files are sent to the nodes, run there, and stored."""

from __future__ import annotations

import io
import json
import sys
import tarfile
from pathlib import Path

import pytest

from fencepost.harness.errors import BadArguments
from fencepost.harness.spec import from_arguments
from fencepost.harness.spec.needs import cluster_for
from fencepost.harness.userlock.resolve import LockRequest, resolve
from fencepost.harness.userlock.user_lock import OWN, from_json
from tests.harness.talk import ACQUIRE, Talk


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "build" / "lib").mkdir(parents=True)
    (tmp_path / "build" / "worker").write_text("#!/bin/sh\n")
    (tmp_path / "build" / "worker").chmod(0o755)
    (tmp_path / "build" / "app.jar").write_text("")
    (tmp_path / "build" / "lib" / "more.jar").write_text("")
    return tmp_path


def own(program="./worker", ship="build", servers="redis:1", lock="", **more):
    folder = Path(ship) if ship else None
    return resolve(lock, LockRequest(servers, program=program, ship=folder, **more))


def test_a_command_is_run_in_the_folder_that_is_shipped():
    name, found = own()
    lock = found.lock_type(name, {})
    assert (name, lock.program) == ("worker", ("env", "-C", OWN, "./worker"))
    assert list(found.files) == ["app.jar", "lib/more.jar", "worker"]
    assert (lock.kind, lock.servers, lock.ends_with) == ("redis", 1, "lease")


def test_a_program_on_the_nodes_runs_the_shipped_files_and_names_the_lock():
    name, found = own("java -cp app.jar:lib/more.jar -jar app.jar 'with a space'")
    assert (name, found.program[-1]) == ("app", "with a space")


@pytest.mark.parametrize(
    "command, name",
    [("java -cp . MyLock", "MyLock"), ("/app/worker serve", "worker"), ("/a.b/w --fast", "w")],
)
def test_a_run_is_named_after_its_program(command, name):
    assert own(command)[0] == name


def test_a_lock_may_be_given_a_name():
    assert own(lock="mine")[0] == "mine"


def test_it_is_stored_with_its_files_and_found_again(tmp_path):
    _, found = own(client_image="myapp:3")
    run = tmp_path / "run"
    kept = found.kept(run)
    again = from_json(json.loads(json.dumps(kept.to_json())), run)
    assert (again.program, again.image, again.servers) == (("./worker",), "myapp:3", found.servers)
    assert (run / "own" / "worker").stat().st_mode & 0o100


def test_in_an_image_of_its_own_it_needs_no_file_of_fencepost():
    name, found = own(client_image="myapp:3")
    assert found.lock_type(name, {}).program == ("./worker",)
    with tarfile.open(fileobj=io.BytesIO(found.archive(OWN))) as tar:
        assert f"{OWN}/worker".lstrip("/") in tar.getnames()


def test_in_an_image_its_program_may_be_a_file_of_the_image():
    _, found = own("bin/worker --fast", ship="", client_image="myapp:3")
    assert (found.program, found.files) == (("bin/worker", "--fast"), {})


@pytest.mark.parametrize(
    "given, says",
    [
        ({"program": "./other"}, "build has no file other; it has app.jar, worker"),
        ({"program": "./app.jar"}, "is not executable: chmod +x it"),
        ({"program": "worker"}, "to run worker of build, write ./worker"),
        (
            {"ship": ""},
            "a relative path needs --ship DIR: the folder that is sent to the clients' nodes",
        ),
        ({"ship": "nowhere"}, "--ship nowhere: no such folder"),
        ({"program": "'worker"}, "is not a command: No closing quotation"),
        ({"program": " "}, "--program is empty"),
        ({"servers": ""}, "--program './worker' needs servers: add for example --servers redis:1"),
        ({"program": "", "ship": None, "elector": True}, "--elector needs --program"),
        ({"lock": "mylock.py:MyLock"}, "name two locks: give only one"),
    ],
)
def test_a_program_that_cannot_run_is_refused_before_anything_starts(given, says):
    with pytest.raises(BadArguments) as error:
        own(**given)
    assert says in str(error.value)


def test_a_program_that_is_an_elector_is_one_in_the_stored_test_too(tmp_path):
    kept = own(elector=True)[1].kept(tmp_path / "run")
    found = from_json(kept.to_json(), tmp_path / "run")
    assert found.elector and found.lock_type("mine", {}).elector
    assert not own()[1].lock_type("mine", {}).elector


LOCK = """
from fencepost import Failed, Grant

class MyLock:
    def __init__(self, servers, **options): ...
    def acquire(self, name, ttl):
        if name == "no":
            raise Failed("somebody else has it")
        return Grant(token=7)
    def release(self, name): ...
"""


def test_a_class_in_an_image_is_a_program_on_the_sdk(tmp_path, spawn, setup):
    (tmp_path / "mylock.py").write_text(LOCK)
    name, found = resolve("mylock.py:MyLock", LockRequest("redis:1", client_image="myapp:3"))
    assert (name, found.image, found.needs_python) == ("MyLock", "myapp:3", True)
    assert sorted(found.files) == ["fencepost_sdk.py", "mylock.py"]
    kept = found.kept(tmp_path / "run")
    assert from_json(kept.to_json(), tmp_path / "run").program == found.program

    talk = Talk(
        spawn(["env", "-C", str(tmp_path / "run" / "own"), sys.executable, *found.program[1:]])
    )
    talk.say(control="setup", **setup | {"options": {}})
    assert talk.hear()["control"] == "ready"
    talk.say(**ACQUIRE)
    assert [talk.hear()["type"], talk.hear()["value"]["token"]] == ["invoke", 7]
    talk.say(f="acquire", value={"lock": "no", "ttl": 10**9})
    assert [talk.hear()["type"], talk.hear()["error"][1]] == ["invoke", "somebody else has it"]


def test_files_of_an_image_are_not_sent_to_it(tmp_path):
    (tmp_path / "mylock.py").write_text(LOCK)
    asked = LockRequest("redis:1", requirements=tmp_path / "mylock.py", client_image="myapp:3")
    with pytest.raises(BadArguments, match="--requirements cannot be combined with --client-image"):
        resolve("mylock.py:MyLock", asked)


def test_a_folder_without_a_program_is_refused():
    with pytest.raises(BadArguments, match="--client-image is for user locks"):
        resolve("redlock", LockRequest(client_image="myapp:3"))
    with pytest.raises(BadArguments, match="--ship needs --program"):
        own(program="")


def spec(**settings):
    name, found = own(client_image="myapp:3")
    return from_arguments.spec(name, {}, settings, found)


def test_in_an_image_a_clock_that_a_restart_would_mend_is_refused():
    spec(nemesis=["kill"])
    with pytest.raises(BadArguments, match="use either clock or kill, not both"):
        spec(nemesis=["kill", "clock:client/wall"])


def test_an_image_needs_containers():
    with pytest.raises(BadArguments, match="--client-image needs containers"):
        cluster_for([spec()], print, remote="ssh")
