"""The libraries under test: their files on the nodes, and the commands of their workers."""

from __future__ import annotations

import json
import re
from importlib.metadata import packages_distributions

import pytest

from fencepost.harness.clients.client_program import command
from fencepost.harness.cluster import libraries
from fencepost.node.places import PYTHON
from fencepost.workloads.locks.libraries.kazoo import KazooLock
from fencepost.workloads.locks.registry import LOCKS

LIBRARIES = [lock for lock in LOCKS.values() if lock.library]
IDS = [lock.name for lock in LIBRARIES]


@pytest.mark.parametrize("lock", LIBRARIES, ids=IDS)
def test_every_library_can_be_in_the_image(lock):
    assert lock.library in libraries.names()


def test_every_library_in_the_image_can_be_tested():
    assert {lock.library for lock in LIBRARIES} == set(libraries.names())


@pytest.mark.parametrize("pins", sorted(libraries.PINS.glob("*.txt")), ids=lambda pins: pins.stem)
def test_python_libraries_are_pinned_with_all_that_they_need(pins):
    lines = libraries.without_hashes(pins).split()
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+==[0-9.]+(post[0-9]+)?", line) for line in lines), (
        lines
    )
    assert len({line.partition("==")[0].lower() for line in lines}) == len(lines)


@pytest.mark.parametrize("package", sorted(libraries.PINS.glob("*/package.json")))
def test_npm_libraries_are_pinned_to_exact_versions(package):
    versions = json.loads(package.read_text())["dependencies"].values()
    assert all(re.fullmatch(r"\d+\.\d+\.\d+", version) for version in versions)


@pytest.mark.parametrize("lock", LIBRARIES, ids=IDS)
def test_a_library_s_worker_runs_in_its_own_environment_or_is_a_program_of_its_own(lock):
    words = command(lock)
    if lock.program:
        assert words[-len(lock.program) :] == lock.program
    else:
        assert f"/opt/fencepost/libraries/{lock.library}/bin/python" in words
        # The pump that starts it is not the library's business.
        assert words.index(PYTHON) < words.index(
            f"/opt/fencepost/libraries/{lock.library}/bin/python"
        )


@pytest.mark.parametrize(
    ("library", "version"),
    [
        ("redis-py", "8.1.0"),
        ("redlock-py", "1.0.8"),
        ("python-redis-lock", "4.0.1"),
        ("node-redlock", "4.2.0"),
        ("curator", "as Debian has it"),
    ],
)
def test_a_run_says_which_version_it_tested(library, version):
    assert libraries.version(library) == version


@pytest.mark.parametrize(
    "lock", [lock for lock in LIBRARIES if lock.make], ids=lambda lock: lock.name
)
def test_a_python_library_s_package_is_what_pip_and_the_pins_call_it(lock):
    pins = libraries.PINS / f"{lock.library}.txt"
    assert f"{lock.distribution}==" in pins.read_text()
    installed = packages_distributions().get(lock.imported)
    if installed is None:
        pytest.skip(f"{lock.library} is not installed")
    assert lock.distribution in installed


def test_a_lock_that_cannot_be_simulated_names_a_port_that_can():
    ports = {lock.name: LOCKS[lock.port] for lock in LOCKS.values() if lock.port}
    assert {name: port.name for name, port in ports.items()} == {"node-redlock": "redlock-npm"}
    assert all(port.make and not port.library for port in ports.values())


@pytest.mark.parametrize("state", ["SUSPENDED", "LOST"])
def test_kazoo_in_doubt_loses_its_holds_and_asks_again_by_itself(world, state):
    pytest.importorskip("kazoo")
    lock = KazooLock(world.env(), ["zookeeper-1"], LOCKS["kazoo"].read_options({}))
    lock._held["secret"] = None
    lock._listen("CONNECTED")
    assert world.said == []
    lock._listen(state)
    why = f"the connection is {state}"
    assert world.said == [("lost", "secret", why), ("requeued", "", why)]
