"""A container gets the rights that the faults of its run need, and no more."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from fencepost.harness.cluster import brought_up, composefile
from fencepost.harness.run import needs
from fencepost.harness.run.spec import Spec, scripted
from fencepost.nemesis.families import FAMILIES
from fencepost.workloads.locks.registry import LOCKS
from fencepost.workloads.scenarios.registry import SUITES

SPEC = Spec("redis", "redis", LOCKS["redis"].read_options({}))
MOUNTING = ("power", "disk", "cpu")


def services(**asked):
    return json.loads(composefile.content(**asked))["services"]


def test_no_node_can_mount_anything_where_no_fault_needs_it():
    for service in services(mounts=False).values():
        assert service["cap_add"] == ["NET_ADMIN", "SYS_PTRACE"]
        assert service["security_opt"] == ["no-new-privileges:true"]
        assert "device_cgroup_rules" not in service


def test_where_a_fault_needs_it_servers_can_and_storage_and_clients_cannot():
    for node, service in services(mounts=True).items():
        may = not node.startswith(("client", "storage"))
        assert ("SYS_ADMIN" in service["cap_add"]) is may
        assert ("apparmor:unconfined" in service["security_opt"]) is may
        assert ("device_cgroup_rules" in service) is may


@pytest.mark.parametrize("mounts", [True, False])
def test_every_node_has_its_limits_and_gets_no_new_privileges(mounts):
    for service in services(mounts=mounts).values():
        assert service["mem_limit"] and service["pids_limit"]
        assert "no-new-privileges:true" in service["security_opt"]
        assert "privileged" not in service and "ports" not in service


def test_only_nodes_that_are_reached_by_ssh_let_a_user_become_root():
    for service in services(sudo=True).values():
        assert "no-new-privileges:true" not in service["security_opt"]


@pytest.mark.parametrize("family", FAMILIES)
def test_the_families_that_mount_something_are_known(family):
    assert FAMILIES[family].mounts is (family in MOUNTING)
    spec = replace(SPEC, nemesis=(f"{family}@3s", "pause"))
    assert needs.mounts([SPEC, spec]) is (family in MOUNTING)


def test_a_scenario_s_families_count_too():
    found = {
        scenario.name: needs.mounts([scripted("x", "redis", scenario, 1)])
        for suite in SUITES.values()
        for scenario in suite.scenarios
    }
    assert any(found.values()) and not all(found.values())
    assert all(mounts for name, mounts in found.items() if name.startswith("power-loss"))


@pytest.mark.parametrize(("nemesis", "mounts"), [(("pause",), False), (("pause", "disk"), True)])
def test_a_test_s_cluster_is_brought_up_with_what_its_faults_need(monkeypatch, nemesis, mounts):
    ways = []
    monkeypatch.setattr(brought_up, "brought_up", lambda *given: ways.append(given[-1]))
    needs.cluster_for([replace(SPEC, nemesis=nemesis)], print)
    assert [way.mounts for way in ways] == [mounts]
