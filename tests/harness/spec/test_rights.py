"""A container gets the rights that the faults of its run need, and no more."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fencepost.harness.cluster import nodes, provision
from fencepost.harness.cluster.services import service
from fencepost.harness.execute.scripted import of_suite
from fencepost.harness.spec import needs
from fencepost.harness.spec.spec import Spec
from fencepost.nemesis.families import FAMILIES
from fencepost.workloads.locks.registry import LOCKS
from fencepost.workloads.scenarios.registry import SUITES

SPEC = Spec("redis", "redis", LOCKS["redis"].read_options({}))
MOUNTING = ("power", "disk", "cpu")


def services(**asked):
    return {node: service(node, "an-image", **asked) for node in nodes.every()}


def test_no_node_can_mount_anything_where_no_fault_needs_it():
    for made in services(mounts=False).values():
        assert made.capabilities == ("NET_ADMIN", "SYS_PTRACE")
        assert made.security == ("no-new-privileges:true",)
        assert made.devices == ()


def test_where_a_fault_needs_it_servers_can_and_storage_and_clients_cannot():
    for node, made in services(mounts=True).items():
        may = not node.startswith(("client", "storage"))
        assert ("SYS_ADMIN" in made.capabilities) is may
        assert ("apparmor:unconfined" in made.security) is may
        assert bool(made.devices) is may


@pytest.mark.parametrize("mounts", [True, False])
def test_every_node_has_its_limits_and_gets_no_new_privileges(mounts):
    for made in services(mounts=mounts).values():
        assert made.memory and made.processes
        assert "no-new-privileges:true" in made.security


def test_only_nodes_that_are_reached_by_ssh_let_a_user_become_root():
    for made in services(sudo=True).values():
        assert "no-new-privileges:true" not in made.security


@pytest.mark.parametrize("family", FAMILIES)
def test_the_families_that_mount_something_are_known(family):
    assert FAMILIES[family].mounts is (family in MOUNTING)
    spec = replace(SPEC, nemesis=(f"{family}@3s", "pause"))
    assert needs.mounts([SPEC, spec]) is (family in MOUNTING)


def test_a_scenario_s_families_count_too():
    found = {
        scenario.name: needs.mounts([of_suite("x", suite.lock, scenario, 1)])
        for suite in SUITES.values()
        for scenario in suite.scenarios
    }
    assert any(found.values()) and not all(found.values())
    assert all(mounts for name, mounts in found.items() if name.startswith("power-loss"))


@pytest.mark.parametrize(("nemesis", "mounts"), [(("pause",), False), (("pause", "disk"), True)])
def test_a_test_s_cluster_starts_with_the_rights_that_its_faults_need(monkeypatch, nemesis, mounts):
    ways = []
    monkeypatch.setattr(provision, "brought_up", lambda *given: ways.append(given[-1]))
    needs.cluster_for([replace(SPEC, nemesis=nemesis)], print)
    assert [way.mounts for way in ways] == [mounts]
