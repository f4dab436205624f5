"""Clients of sdk/examples are hunted by name, where their compiler and library are."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from fencepost.harness.errors import BadArguments
from fencepost.harness.hunting import examples
from fencepost.harness.hunting.examples import EXAMPLES
from fencepost.harness.hunting.hunts import described
from fencepost.harness.hunting.programs import conductor
from fencepost.hunt.live.conductor import Job
from fencepost.hunt.search.judge import violations
from fencepost.hunt.sim.schedule import Schedule
from fencepost.workloads.locks.registry import LOCKS

OWN = ("ioredis", "redigo", "hiredis")
"""Locks written for the test, with a defect by their argument."""


def there(name):
    """Skip where the library is not installed."""
    try:
        made, folder = examples.built(name)
    except BadArguments as error:
        pytest.skip(str(error))
    if made.folder == "npm":
        places = os.environ.get("NODE_PATH", "").split(os.pathsep)
        library = made.packages.removeprefix("npm's ").partition(" ")[0]
        package = library if library.startswith("@") else library.partition("@")[0]
        if not any((Path(place) / package).is_dir() for place in places if place):
            pytest.skip(f"needs {made.packages} in NODE_PATH")
    return made, folder


@pytest.fixture(autouse=True)
def _builds_again():
    yield
    examples._compiled.cache_clear()


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_has_its_sources_and_no_name_of_a_lock(name):
    made = EXAMPLES[name]
    assert name not in LOCKS
    word = made.program.split()[-1 if made.folder != "npm" else 1]
    assert (made.sources / ("build.sh" if word == "./worker" else word)).is_file()


@pytest.mark.parametrize("name", ["etcd-mutex", "ioredis"])
def test_a_machine_without_the_compiler_is_told_what_to_install(monkeypatch, name):
    monkeypatch.setattr(shutil, "which", lambda word: None)
    needs, packages = EXAMPLES[name].needs, EXAMPLES[name].packages
    with pytest.raises(BadArguments, match=f"{needs} is not on this machine. Install {packages}"):
        described(name, {}, {"seed": 1})


def test_a_program_that_does_not_build_is_told_with_the_compilers_words(monkeypatch):
    def run(command, **_):
        return subprocess.CompletedProcess(command, 1, "", "cannot find package")

    monkeypatch.setattr(shutil, "which", lambda word: f"/usr/bin/{word}")
    monkeypatch.setattr(subprocess, "run", run)
    with pytest.raises(BadArguments, match=r"It needs Debian's golang-go .*: cannot find package"):
        described("etcd-mutex", {}, {"seed": 1})


def test_an_example_takes_no_other_program_or_servers(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda word: f"/usr/bin/{word}")
    with pytest.raises(BadArguments, match="leave --servers, --ends-with, --ship"):
        described("ioredis", {}, {"seed": 1}, servers="redis:3")


@pytest.mark.slow
@pytest.mark.parametrize("name", EXAMPLES)
def test_the_clients_of_an_example_take_turns_and_the_hunt_repeats_itself_by_name(name):
    there(name)
    hunt = described(name, {}, {"seed": 1})
    with conductor(hunt.spec, hunt.setting, 1) as made:
        runs = list(made.play([Job(Schedule()), Job(Schedule())]))
    # etcd's client waits for servers that are gone when it closes, so it is started again.
    assert runs[0].programs == runs[1].programs or name == "etcd-mutex"
    for run in runs:
        assert run.came_back and not run.hung
        for client in ("client-1", "client-2"):
            done = [row[2:4] for row in run.rows if row[6] == client and row[2] != "invoke"]
            assert {("ok", f) for f in ("acquire", "read", "write", "release")} <= set(done)
        assert not violations(run, hunt.setting.goals)
    with pytest.raises(BadArguments, match="its library is not on the nodes"):
        hunt.must_have_servers()
    assert hunt.again().startswith(f"fencepost hunt {name} --")
    assert "--program" not in hunt.again() and "--ship" not in hunt.again()


@pytest.mark.slow
@pytest.mark.parametrize("name", OWN)
@pytest.mark.parametrize(("versions", "speaks"), [([1], 1), ([1, 2], 2)])
def test_a_client_speaks_the_highest_version_that_the_harness_has(name, versions, speaks):
    made, folder = there(name)
    address = ["127.0.0.1", 1]
    setup = {
        "control": "setup", "versions": versions, "process": 0, "stride": 2, "node": "client-1",
        "lock": name, "options": {}, "servers": ["redis-1"], "storage": "storage",
        "addresses": {"redis-1": address, "storage": address}, "store": "redis", "guard": "none",
        "write_script": "return 1", "seed": "1", "origin_ns": 0,
    }  # fmt: skip
    ended = subprocess.run(
        made.program.split(), cwd=folder, input=json.dumps(setup) + "\n",
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    ready = json.loads(ended.stdout.splitlines()[0])
    assert (ready["control"], ready["version"]) == ("ready", speaks)


@pytest.mark.slow
@pytest.mark.parametrize("name", OWN)
def test_a_release_without_a_look_at_the_owner_is_found(name):
    made, folder = there(name)
    hunt = described(
        "", {}, {"seed": 1}, servers="redis:1", ship=folder,
        program=f"{made.program} no-owner-check", budget="120s",
    )  # fmt: skip
    _, find = hunt.carry_out(4)
    assert find is not None and {"lease_exclusion", "ownership"} & set(find.broken)
