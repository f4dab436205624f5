"""`fencepost doctor` checks the requirements of a run, and gives a remedy for each missing one."""

from __future__ import annotations

import os
import sys
from collections import namedtuple

import pytest

from fencepost.harness.cluster import machine
from fencepost.harness.command import app
from fencepost.harness.errors import Crashed
from fencepost.nemesis import clock

Engine = namedtuple("Engine", "version")
Usage = namedtuple("Usage", "free")


@pytest.fixture
def doctor(monkeypatch, capsys, tmp_path):
    """A machine that meets all requirements; the test removes one."""
    monkeypatch.setenv("FENCEPOST_RESULTS", str(tmp_path / "results"))
    monkeypatch.setattr(machine.docker_engine, "find", lambda: Engine("27.1"))
    monkeypatch.setattr(machine.docker_engine, "compose_there", lambda: ("docker", "compose"))
    monkeypatch.setattr(machine.image, "built", lambda: "fencepost-node:123")
    monkeypatch.setattr(machine.shutil, "disk_usage", lambda path: Usage(100 << 30))
    monkeypatch.setattr(machine, "_memory", lambda: machine.Finding(True, "memory", "enough"))
    monkeypatch.setattr(machine, "_firewall", lambda: machine.Finding(True, "filter", "there"))
    monkeypatch.setattr(machine, "_clock", lambda: machine.Finding(True, "clock", "tsc"))

    def run():
        monkeypatch.setattr(sys, "argv", ["fencepost", "doctor"])
        return app.run(), capsys.readouterr().out

    return run


def test_a_machine_that_meets_all_requirements_can_start_a_run(doctor):
    code, said = doctor()
    assert code == 0
    assert "lacks" not in said
    assert said.strip().endswith("This machine can run tests.")


def lacking(monkeypatch, what):
    def refused():
        raise Crashed("A Docker engine is running, but this user may not use it. Run as root")

    def none():
        raise machine.docker_engine.NoEngine("Docker is not installed here, so no node is running.")

    match what:
        case "rights":
            monkeypatch.setattr(machine.docker_engine, "find", refused)
        case "engine":
            monkeypatch.setattr(machine.docker_engine, "find", none)
            monkeypatch.setattr(machine.os, "geteuid", lambda: 1000)
        case "disk":
            monkeypatch.setattr(machine.shutil, "disk_usage", lambda path: Usage(1 << 20))


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("rights", "this user may not use it. Run as root"),
        ("engine", "Install Docker Engine"),
        ("disk", "0.0 GB are free: make room below "),
    ],
)
def test_a_missing_requirement_is_named_with_a_remedy(doctor, monkeypatch, what, words):
    lacking(monkeypatch, what)
    code, said = doctor()
    assert (code, words in " ".join(said.split())) == (1, True), said
    assert "to fix first" in said


def test_requirements_of_single_faults_do_not_prevent_a_run(doctor, monkeypatch):
    monkeypatch.setattr(clock.platform, "machine", lambda: "riscv64")
    code, said = doctor()
    assert code == 0
    assert "riscv64: clock faults only for Redis" in said


def test_compose_is_needed_for_compose_files_alone(doctor, monkeypatch):
    monkeypatch.setattr(machine.docker_engine, "compose_there", lambda: ())
    code, said = doctor()
    assert code == 0
    assert "install Docker's Compose plugin to use --compose" in " ".join(said.split())


def test_the_checks_themselves_work_on_this_machine():
    assert machine._memory().what == "2 GB of memory"
    assert machine._clock().what == "a clock to order events"
    assert machine._firewall().ok in (True, False)


def test_a_packet_filter_that_hangs_is_reported_and_not_waited_for(monkeypatch, tmp_path):
    (tmp_path / "iptables").write_text("#!/bin/sh\nexec sleep 600\n")
    (tmp_path / "iptables").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(machine.os, "geteuid", lambda: 0)
    monkeypatch.setattr(machine, "_FIREWALL_S", 0.5)
    found = machine._firewall()
    assert (found.ok, "iptables -w timed out after" in found.how) == (False, True)
