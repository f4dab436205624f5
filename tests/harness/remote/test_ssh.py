"""A Remote by SSH, against a server on loopback: arguments, host keys, lost connections."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import paramiko
import pytest

from fencepost.harness.clients.client_program import command
from fencepost.harness.clients.recorder import Recorder
from fencepost.harness.clients.worker import Worker
from fencepost.harness.remote import agent, ssh
from fencepost.harness.remote.remote import NoAnswer, RemoteError
from fencepost.harness.remote.ssh import Host, SshRemote
from fencepost.node.places import CODE_PATH, PYTHON
from fencepost.workloads.locks.registry import LOCKS
from tests import node_program, ssh_server
from tests.harness.talk import typed
from tests.ssh_server import SshServer

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
HOSTILE = [
    "a b",
    "$(touch x)",
    "`id`",
    "'",
    '"',
    "\\",
    ";rm -rf x",
    "*",
    "",
    "-n",
    "ü",
    "a\nb",
    "!!",
]
SUDO = """#!/bin/sh
[ "$1 $2" = "-n --" ] || exit 9
shift 2
SUDO_USER=us exec "$@"
"""


@pytest.fixture
def server(tmp_path, monkeypatch):
    monkeypatch.setattr(agent, "AGENT", node_program.here(agent.AGENT))
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "sudo").write_text(SUDO)
    (tools / "sudo").chmod(0o755)
    found = SshServer(tmp_path, str(tools))
    yield found
    found.close()


@pytest.fixture
def host(server):
    return Host("127.0.0.1", server.known_hosts, server.port, key=server.key)


@pytest.fixture
def remote(host):
    found = SshRemote("redis-1", host)
    yield found
    found.close()


def test_a_command_s_output_and_exit_code_come_back(remote):
    done = remote.run(["sh", "-c", "echo out; echo err >&2; exit 3"], check=False)
    assert (done.code, done.out, done.err) == (3, "out\n", "err\n")
    with pytest.raises(RemoteError, match="redis-1: false: exit code 1"):
        remote.run(["false"])


def test_hostile_arguments_arrive_as_they_are(remote):
    words = ["printf", "%s\\0", *HOSTILE]
    program = remote.spawn(words)
    assert program.stdout.read().decode().split("\0")[:-1] == HOSTILE
    assert program.wait(120) == 0
    assert remote.run(words).out.split("\0")[:-1] == HOSTILE


def test_files_and_processes(remote, tmp_path, spawn, state, eventually):
    content = bytes(range(256)) * 10_000
    remote.put(str(tmp_path / "deep" / "file"), content)
    assert remote.get(str(tmp_path / "deep" / "file")) == content
    with pytest.raises(RemoteError, match="No such file"):
        remote.get(str(tmp_path / "none"))

    pid = spawn(["sleep", "600"]).pid
    assert remote.signal(pid, signal.SIGSTOP)
    eventually(lambda: remote.state(pid) == "T")
    assert remote.signal(pid, signal.SIGKILL)
    eventually(lambda: remote.state(pid) is None)
    assert not remote.signal(2**22 + 1, 0)


def test_another_user_s_commands_go_through_sudo_that_asks_nothing(server, host):
    remote = SshRemote("redis-1", replace(host, user="us", sudo=True))
    try:
        assert remote.run(["printenv", "SUDO_USER"]).out == "us\n"
    finally:
        remote.close()
    assert all(words.startswith("sudo -n -- env PATH=") for words in server.commands)


def test_a_program_is_used_as_a_child_process_is(remote):
    program = remote.spawn(["cat"])
    program.stdin.write(b"some")
    assert program.stdout.read(100) == b"some"
    with pytest.raises(subprocess.TimeoutExpired):
        program.wait(0.01)
    program.stdin.close()
    assert program.stdout.read(100) == b""
    assert program.wait(120) == 0

    program = remote.spawn(["sh", "-c", "cat > /dev/null; echo words >&2; exit 5"])
    program.stdin.close()
    assert program.stderr.read() == b"words\n"
    assert program.wait(120) == 5

    program = remote.spawn(["sleep", "600"])
    program.kill()
    assert program.stdout.read(100) == b""
    assert program.wait(120) == -1
    with pytest.raises(OSError):
        program.stdin.write(b"x")


def test_all_programs_of_a_node_share_one_connection(remote, server):
    programs = [remote.spawn(["cat"]) for _ in range(20)]
    remote.run(["true"])
    assert len(server.connections) == 1
    for program in programs:
        program.kill()


def test_a_worker_runs_over_it(remote, setup, tmp_path, monkeypatch):
    here = {
        PYTHON: sys.executable,
        f"PYTHONPATH={CODE_PATH}": f"PYTHONPATH={ROOT}/src",
    }
    words = node_program.here(here.get(word, word) for word in command(LOCKS["redis"]))
    recorder = Recorder(tmp_path / "history.jsonl")
    worker = Worker(remote, recorder, typed(setup), words)
    worker.wait_ready()
    worker.begin("acquire", {"lock": "l", "ttl": 2_000_000_000})
    assert worker.finish(120)["type"] == "ok"
    worker.close()
    assert worker.gone
    recorder.close()


def test_an_unknown_host_is_refused_before_anything_is_sent(remote, server):
    server.known_hosts.write_text("")
    with pytest.raises(RemoteError) as refused:
        remote.run(["true"])
    assert f"127.0.0.1 (port {server.port}): its host key is not in {server.known_hosts}" in str(
        refused.value
    )
    assert server.commands == []


def test_a_host_with_another_key_is_refused(remote, server):
    server.knows(paramiko.ECDSAKey.generate())
    with pytest.raises(RemoteError) as refused:
        remote.run(["true"])
    assert f"its host key differs from the one in {server.known_hosts}" in str(refused.value)
    assert server.commands == []


def test_a_refused_login_names_the_key_that_was_tried(host, server, tmp_path):
    other = tmp_path / "other"
    paramiko.ECDSAKey.generate().write_private_key_file(str(other))
    with pytest.raises(RemoteError, match=f"root cannot log in with {other}"):
        SshRemote("redis-1", replace(host, key=other)).run(["true"])


def test_an_unreachable_host_is_named(host, server):
    server.stop_listening()
    with pytest.raises(RemoteError, match=r"cannot connect to root@127.0.0.1:\d+: .*refused"):
        SshRemote("redis-1", host).run(["true"])


def test_a_connection_that_was_lost_is_opened_again(remote, server, tmp_path, eventually):
    remote.run(["true"])
    server.cut()
    eventually(lambda: remote._agent.over)
    # None of it can have been executed, so any request is retried.
    assert remote.run(["echo", "here"]).out == "here\n"
    assert len(server.connections) == 1


def _blocked(tmp_path):
    """A file without a writer: reading it blocks until there is one."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    return path


def test_requests_in_flight_when_the_connection_is_lost_are_retried_if_that_is_safe(
    remote, server, tmp_path
):
    pipe = _blocked(tmp_path)
    remote.run(["true"])
    answers = []
    asking = threading.Thread(target=lambda: answers.append(remote.get(str(pipe))))
    asking.start()
    with pipe.open("wb"):  # opens once the agent has the other end
        # The second agent opens another file there; the first still waits for this one.
        pipe.unlink()
        pipe.write_bytes(b"content")
        server.cut()
        asking.join(120)
    assert answers == [b"content"]


def test_a_command_that_may_have_run_is_not_run_again(remote, server, tmp_path):
    pipe = _blocked(tmp_path)
    errors = []

    def ask():
        try:
            remote.run(["sh", "-c", f"echo once >> {tmp_path}/runs; cat {pipe}"])
        except RemoteError as error:
            errors.append(str(error))

    asking = threading.Thread(target=ask)
    asking.start()
    with pipe.open("wb"):
        server.cut()
        asking.join(120)
    assert "the connection was lost, so whether this was done is unknown" in errors[0]
    assert (tmp_path / "runs").read_text() == "once\n"
    assert remote.run(["echo", "again"]).out == "again\n"


def test_a_write_to_a_hanging_node_times_out(remote, monkeypatch):
    """More than a pipe and a window hold: the write itself hangs."""
    monkeypatch.setattr(agent, "AGENT", ("sleep", "600"))
    monkeypatch.setattr(agent, "_SLACK_S", 0.1)
    with pytest.raises(NoAnswer, match=r"redis-1: write it: .* read nothing for 0 s"):
        remote._ask({"put": "it", "content": "x" * (8 << 20)}, "write it", timeout_s=0.1)


def test_a_connection_to_a_hanging_sshd_times_out(remote, monkeypatch):
    remote.run(["true"])
    remote.close()
    hangs = threading.Event()
    monkeypatch.setattr(ssh_server._Session, "check_channel_exec_request", lambda *_: hangs.wait())
    monkeypatch.setattr(ssh, "_OPEN_S", 0.3)
    with pytest.raises(NoAnswer, match="redis-1: read /it: the node does not answer"):
        remote.get("/it")
    hangs.set()
