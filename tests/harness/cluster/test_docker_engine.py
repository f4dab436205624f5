"""The Docker engine: every command detects it, and only those that need it install it."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from fencepost.harness.cluster import docker_calls, docker_engine
from fencepost.harness.command import app
from fencepost.harness.errors import Crashed


@pytest.fixture(autouse=True)
def weights(monkeypatch):
    """Record where the engine's cgroup would have got its weight."""
    given = []
    monkeypatch.setattr(docker_engine, "give_weight", lambda: given.append("weight"))
    return given


LOOKING = (("heal",), ("heal", "--check"), ("cluster", "status"), ("cluster", "down"))


@pytest.mark.parametrize("command", LOOKING)
@pytest.mark.parametrize("installed", [True, False])
def test_a_command_that_only_lists_or_removes_installs_and_starts_nothing(
    monkeypatch, capsys, command, installed
):
    def silent():
        raise docker_calls.Refused("Docker failed to answer: no socket")

    def never(*_, **__):
        raise AssertionError("something was started")

    monkeypatch.setattr(docker_engine, "version", silent)
    monkeypatch.setattr(
        docker_engine.shutil, "which", lambda name: "/usr/bin/docker" * installed or None
    )
    for start in ("install", "_start", "_provide"):
        monkeypatch.setattr(docker_engine, start, never)
    monkeypatch.setattr(sys, "argv", ["fencepost", *command])
    code = app.run()
    said = "".join(capsys.readouterr())
    if installed:
        assert code == 255
        assert "failed to answer" in said and "This command does not start it" in said
    else:
        assert code == 0
        assert "Docker is not installed here, so no node is running." in said


def test_the_engine_s_packages_are_announced_before_they_are_installed_and_started(
    monkeypatch, weights
):
    did = []

    def run(command, **_):
        did.append(command[0])
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(docker_engine, "version", lambda: "20.10")
    monkeypatch.setattr(docker_engine.shutil, "which", lambda name: None)
    monkeypatch.setattr(docker_engine, "is_debian", lambda: True)
    monkeypatch.setattr(docker_engine.os, "geteuid", lambda: 0)
    monkeypatch.setattr(docker_engine.subprocess, "run", run)
    monkeypatch.setattr(docker_engine, "_wait", lambda *_: did.append("started") or True)
    monkeypatch.setattr(
        docker_engine.subprocess, "Popen", lambda command, **_: did.append(command[0])
    )
    monkeypatch.setattr(docker_engine, "_clear_what_a_killed_daemon_left", lambda: None)
    monkeypatch.setattr(docker_engine, "_alive", lambda *_: None)
    monkeypatch.setattr(docker_engine, "_DAEMON_LOG", docker_engine.Path("/dev/null"))
    monkeypatch.setattr(docker_engine.Path, "is_dir", lambda path: False)
    assert docker_engine.ensure(did.append).version == "20.10"
    before = "Installing docker.io, iptables, ca-certificates, cgroupfs-mount from the distribution"
    assert did == [before, "apt-get", "apt-get", "Starting the Docker daemon", "dockerd", "started"]
    assert weights == ["weight"]


def test_an_engine_without_compose_is_enough_for_a_run_without_a_compose_file(monkeypatch):
    monkeypatch.setattr(docker_engine, "version", lambda: "20.10")
    monkeypatch.setattr(docker_engine.shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(docker_engine, "compose_there", lambda: ())
    monkeypatch.setattr(docker_engine.os, "geteuid", lambda: 1000)
    said = []
    assert docker_engine.ensure(said.append).version == "20.10"
    with pytest.raises(Crashed, match="--compose needs Docker Compose, which is not installed"):
        docker_engine.compose(said.append)
    assert said == []


def test_compose_is_installed_where_a_compose_file_is_asked_for(monkeypatch):
    did = []
    monkeypatch.setattr(docker_engine, "compose_there", lambda: ())
    monkeypatch.setattr(docker_engine, "is_debian", lambda: True)
    monkeypatch.setattr(docker_engine.os, "geteuid", lambda: 0)
    monkeypatch.setattr(docker_engine, "install", lambda say, *packages: did.extend(packages))
    assert docker_engine.compose(print) == ("docker-compose",)
    assert did == ["docker-compose"]


class Engine:
    """A socket that may be an engine's: it answers each request with `answer`, or dies, or hangs.

    With None as the answer it sends nothing.
    """

    def __init__(self, path, answer):
        self._answer = answer
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen()
        self._links = []
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        with contextlib.suppress(OSError):
            while True:
                link, _ = self._listener.accept()
                self._links.append(link)
                if self._answer is not None:
                    link.recv(65536)
                    link.sendall(self._answer)
                    link.close()

    def close(self):
        for one in (self._listener, *self._links):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()


def http(body, status="200 OK"):
    head = f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\nContent-Type: application/json"
    return f"{head}\r\n\r\n{body}".encode()


STRANGE = {
    "silent": (None, "The engine hangs: restart it"),
    "dying": (b"", "Start it"),
    "torn": (http("[" * 99)[:-40], "failed to answer"),
    "no HTTP": (b"220 mail.example.org\r\n", "failed to answer"),
    "no JSON": (http("<html>"), "its answer is invalid"),
    "another shape": (http("[1]"), "its answer is invalid"),
    "an error": (http('{"message": "out of order"}', "500 Broken"), "out of order"),
}


@pytest.mark.parametrize("command", [*LOOKING, ("test", "redis", "--time", "1s")])
@pytest.mark.parametrize("how", STRANGE)
def test_an_engine_that_hangs_dies_or_answers_nonsense_is_a_sentence_and_not_a_traceback(
    monkeypatch, capsys, tmp_path, command, how
):
    answer, words = STRANGE[how]
    there = Engine(tmp_path / "docker.sock", answer)
    monkeypatch.setattr(docker_calls, "CALL_S", 0.2)
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/docker.sock")
    monkeypatch.setattr(docker_engine.shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(docker_engine.os, "geteuid", lambda: 1000)  # nothing starts
    monkeypatch.setattr(sys, "argv", ["fencepost", *command])
    code = app.run()
    there.close()
    said = capsys.readouterr().err
    assert code == 255
    assert words in said
    assert "Traceback" not in said and "defect" not in said
    assert said.count("\n") == 1


@pytest.fixture
def root(monkeypatch):
    """Root on Debian with an installed engine; nothing starts or is removed."""

    def never(*_, **__):
        raise AssertionError("something was started or removed")

    def silent():
        raise docker_calls.Refused("Docker failed to answer: no socket")

    monkeypatch.delenv("DOCKER_HOST", raising=False)
    monkeypatch.setattr(docker_engine, "version", silent)
    monkeypatch.setattr(docker_engine, "is_debian", lambda: True)
    monkeypatch.setattr(docker_engine.os, "geteuid", lambda: 0)
    monkeypatch.setattr(docker_engine.shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(docker_engine.Path, "is_dir", lambda path: False)  # no systemd
    monkeypatch.setattr(docker_engine.subprocess, "run", never)
    monkeypatch.setattr(docker_engine.subprocess, "Popen", never)
    monkeypatch.setattr(docker_engine, "_clear_what_a_killed_daemon_left", never)
    monkeypatch.setattr(docker_engine, "_wait", lambda *_: False)


def test_next_to_a_running_daemon_without_answers_none_is_started(root, monkeypatch, tmp_path):
    pid = tmp_path / "docker.pid"
    pid.write_text(f"{os.getpid()}\n")
    name = docker_engine.Path("/proc/self/comm").read_text().strip()
    monkeypatch.setattr(docker_engine, "_PID_FILE", pid)
    alive = docker_engine._alive
    monkeypatch.setattr(docker_engine, "_alive", lambda file, *_: alive(file, name))
    with pytest.raises(Crashed, match=rf"is running \(pid {os.getpid()}\) but does not answer"):
        docker_engine.ensure(lambda text: None)


def test_a_daemon_that_has_ended_and_was_not_waited_for_does_not_run(tmp_path):
    pid = tmp_path / "docker.pid"
    with subprocess.Popen(["sleep", "60"]) as child:
        pid.write_text(str(child.pid))
        assert docker_engine._alive(pid, "sleep") == child.pid
        assert docker_engine._alive(pid, "dockerd") is None
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert docker_engine.Path(f"/proc/{child.pid}/comm").read_text().strip() == "sleep"
        assert docker_engine._alive(pid, "sleep") is None


def test_where_docker_host_names_an_engine_no_other_one_is_started(root, monkeypatch):
    monkeypatch.setenv("DOCKER_HOST", "tcp://10.0.0.9:2375")
    with pytest.raises(
        Crashed, match=r"no Docker engine answers at tcp://10\.0\.0\.9:2375 \(DOCKER_HOST\)"
    ):
        docker_engine.ensure(lambda text: None)


def test_an_installation_that_hangs_ends_with_a_remedy(monkeypatch, tmp_path):
    (tmp_path / "apt-get").write_text("#!/bin/sh\nexec sleep 600\n")
    (tmp_path / "apt-get").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(docker_engine, "_APT_S", 0.5)
    with pytest.raises(Crashed, match=r"apt-get update timed out after .* Check for the cause"):
        docker_engine.install(lambda said: None, "docker.io")


def test_two_installations_at_once_wait_for_each_other(monkeypatch, tmp_path):
    # As apt: the second that begins before the first has ended fails.
    (tmp_path / "apt-get").write_text(
        f"#!/bin/sh\nmkdir {tmp_path}/lock || exit 100\nsleep 0.1\nrmdir {tmp_path}/lock\n"
    )
    (tmp_path / "apt-get").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with ThreadPoolExecutor(3) as pool:
        names = ("npm", "npm", "debootstrap")
        list(pool.map(lambda name: docker_engine.install(lambda said: None, name), names))
