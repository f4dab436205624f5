"""The weight of all containers together, where fencepost starts the engine without systemd."""

from __future__ import annotations

import pytest

from fencepost.harness.cluster import engine_weight
from fencepost.harness.cluster.engine_weight import give_weight


@pytest.fixture
def root(monkeypatch, tmp_path):
    """The root of cgroups, whose new folders have no files: a kernel makes these."""
    monkeypatch.setattr(engine_weight, "_ROOT", tmp_path)
    return tmp_path


@pytest.fixture
def first(root):
    (root / "cpu" / "docker").mkdir(parents=True)
    (root / "cpu" / "docker" / "cpu.shares").write_text("1024\n")
    return root / "cpu" / "docker" / "cpu.shares"


@pytest.fixture
def second(root):
    (root / "cgroup.controllers").write_text("cpuset cpu io memory\n")
    (root / "docker").mkdir()
    (root / "docker" / "cpu.weight").write_text("100\n")
    return root / "docker" / "cpu.weight"


def test_containers_weigh_as_much_as_eight_sessions_by_version_1(first):
    give_weight()
    assert first.read_text() == "8192"


def test_containers_weigh_as_much_as_eight_sessions_by_version_2(second, root):
    give_weight()
    assert second.read_text() == "800"
    assert (root / "cgroup.subtree_control").read_text() == "+cpu"


def test_a_weight_that_somebody_chose_stays(first):
    first.write_text("16384\n")
    give_weight()
    assert first.read_text() == "16384\n"


@pytest.mark.parametrize("there", ["nothing", "cpu", "unwritable"])
def test_where_there_is_no_such_weight_nothing_is_set_and_nothing_fails(root, there):
    if there == "cpu":
        (root / "cpu").mkdir()
    if there == "unwritable":
        (root / "cgroup.controllers").mkdir()
    give_weight()
    assert [path for path in root.rglob("*") if path.is_file()] == []
