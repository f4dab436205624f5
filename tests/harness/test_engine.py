"""The Docker engine: looked at by every command, provided by those alone that need one."""

from __future__ import annotations

import subprocess
import sys

import pytest

from fencepost.harness.cluster import engine
from fencepost.harness.command import app

LOOKING = (("heal",), ("heal", "--check"), ("cluster", "status"), ("cluster", "down"))


@pytest.mark.parametrize("command", LOOKING)
@pytest.mark.parametrize("installed", [True, False])
def test_a_command_that_looks_or_removes_installs_and_starts_nothing(
    monkeypatch, capsys, command, installed
):
    def silent():
        raise engine.DockerException("no socket")

    def never(*_, **__):
        raise AssertionError("something was started")

    monkeypatch.setattr(engine, "version", silent)
    monkeypatch.setattr(engine.shutil, "which", lambda name: "/usr/bin/docker" * installed or None)
    monkeypatch.setattr(engine, "_compose_there", lambda: ())
    for start in ("install", "_start", "_provide"):
        monkeypatch.setattr(engine, start, never)
    monkeypatch.setattr(sys, "argv", ["fencepost", *command])
    code = app.run()
    said = "".join(capsys.readouterr())
    if installed:
        assert code == 255
        assert "does not answer" in said and "this command does not start it" in said
    else:
        assert code == 0
        assert "Docker is not installed here, so no node is up." in said


def test_what_is_installed_and_started_is_said_first(monkeypatch):
    did = []

    def run(command, **_):
        did.append(command[0])
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(engine, "version", lambda: "20.10")
    monkeypatch.setattr(engine.shutil, "which", lambda name: None)
    monkeypatch.setattr(engine, "_compose_there", lambda: ("docker-compose",))
    monkeypatch.setattr(engine, "is_debian", lambda: True)
    monkeypatch.setattr(engine.os, "geteuid", lambda: 0)
    monkeypatch.setattr(engine.subprocess, "run", run)
    monkeypatch.setattr(engine, "_wait", lambda *_: did.append("started") or True)
    monkeypatch.setattr(engine.subprocess, "Popen", lambda command, **_: did.append(command[0]))
    monkeypatch.setattr(engine, "_clear_what_a_killed_daemon_left", lambda: None)
    monkeypatch.setattr(engine, "_DAEMON_LOG", engine.Path("/dev/null"))
    monkeypatch.setattr(engine.Path, "is_dir", lambda path: False)
    assert engine.ensure(did.append).version == "20.10"
    before = "Installing docker.io, docker-compose, iptables from the distribution"
    assert did == [before, "apt-get", "apt-get", "Starting the Docker daemon", "dockerd", "started"]
