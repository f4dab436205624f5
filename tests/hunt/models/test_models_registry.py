"""Models by name: a package brings one, and a kind without one is refused."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from fencepost.harness.errors import BadArguments
from fencepost.harness.servers.kinds import KINDS
from fencepost.hunt.faults.registry import SIMULATED, table
from fencepost.hunt.models.model import Storage
from fencepost.hunt.models.redis.server import RedisServer
from fencepost.hunt.models.registry import MODELS, storage, stores
from fencepost.hunt.run import Run
from fencepost.hunt.sim.network import Network
from fencepost.hunt.sim.schedule import Schedule
from fencepost.hunt.sim.world import World
from fencepost.nemesis.families import FAMILIES
from fencepost.registry import BadPlugin

TOY = '''
from dataclasses import replace

from fencepost.harness.servers.redis import KIND as REDIS
from fencepost.hunt.faults.simulated import Action, Simulated
from fencepost.hunt.models.model import Model
from fencepost.hunt.models.model import Storage
from fencepost.hunt.models.redis.server import RedisServer
from fencepost.nemesis.pause import FAMILY as PAUSE

class ToyServer(RedisServer):
    """It answers as Redis does."""

def servers(setting, network):
    return [ToyServer(name, n, network, "none") for n, name in enumerate(setting.servers)]

def storage(site):
    return ToyServer(site.name, 99, site.network, "none")

MODEL = Model("toy", servers, {"toy-store": storage}, steps=True, wall_leases=True)
KIND = replace(REDIS, name="toy-kind", module=__name__, serves="redis", model="toy")
OTHER = replace(KIND, name="other-kind", model="")
FAMILY = replace(PAUSE, name="doze")

def inject(run, event):
    run.faults.begin("doze", ["redis-1"], {}, "redis-1 dozes", lambda: None, 1)
    return True

SIMULATED = Simulated("doze", lambda setting: [Action("doze", "server", inject)])
'''
POINTS = """
[fencepost.models]
toy = toy_model:MODEL
[fencepost.servers]
toy-kind = toy_model:KIND
other-kind = toy_model:OTHER
[fencepost.faults]
doze = toy_model:FAMILY
[fencepost.simulated_faults]
doze = toy_model:SIMULATED
"""
REGISTRIES = (MODELS, KINDS, FAMILIES, SIMULATED)


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Installs a package with these entry points."""

    def put(points=POINTS):
        (tmp_path / "toy_model.py").write_text(TOY)
        info = tmp_path / "toy-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: toy\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(points)
        monkeypatch.syspath_prepend(tmp_path)
        for registry in REGISTRIES:
            registry.forget()

    yield put
    for registry in REGISTRIES:
        registry.forget()
    sys.modules.pop("toy_model", None)


def test_the_kinds_name_the_models_that_there_are():
    assert {kind.model for kind in KINDS.values()} - {""} == set(MODELS)


def test_a_store_is_offered_by_one_model():
    assert sorted(stores()) == sorted(set(stores()))


def test_a_package_brings_a_model_and_a_fault_of_its_own(install, setting):
    install()
    one = setting("redis", "doze", server={"redis": "toy-kind"})
    assert (one.model, one.faults) == ("toy", ("doze",))
    run = Run(one, Schedule((), ((5, 1),)), table(one)).execute()
    assert type(run.servers[0]).__name__ == "ToyServer"
    assert run.came_back
    assert [row[3] for row in run.rows if row[1] == "nemesis"] == ["doze"] * 4


def test_the_store_of_a_package_goes_with_it(install):
    world = World()
    site = Storage("storage", 99, Network(world, None), [], world.start)
    install()
    assert type(storage("toy-store", site)).__name__ == "ToyServer"
    os.remove(Path(sys.modules["toy_model"].__file__).parent / "toy-1.0.dist-info/entry_points.txt")
    MODELS.forget()
    with pytest.raises(KeyError):
        storage("toy-store", site)


def test_a_kind_without_a_model_is_refused_with_those_that_have_one(install, setting):
    install()
    with pytest.raises(
        BadArguments, match=r"there is no model of other-kind, only of redis, etcd, .*, toy"
    ):
        setting("redis", server={"redis": "other-kind"})


def test_an_entry_point_that_is_no_model_names_its_package(install):
    install("[fencepost.models]\ntoy = toy_model:FAMILY\n")
    with pytest.raises(BadPlugin, match=r"package toy 1.0: .*it is a Family"):
        list(MODELS)


def test_a_model_knows_how_long_its_leases_still_live():
    server = RedisServer("redis-1", 0, Network(World(), None), "none")
    lease_ns = MODELS["redis"].lease_ns
    assert lease_ns(server, 0) == 0
    server.handle(("SET", "short", "x", "PX", "2000"))
    server.handle(("SET", "long", "x", "PX", "60000"))
    assert lease_ns(server, 0) == 60 * 10**9
    assert lease_ns(server, 10**9) == 59 * 10**9
    assert MODELS["etcd"].lease_ns(server, 0) == 0
