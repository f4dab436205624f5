"""Pid and start time identify a process; a mark in its environment makes it fencepost's."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys

import pytest

from fencepost.node import agent, processes
from fencepost.node.places import MARK


@pytest.fixture
def sleeper():
    started = []

    def start(*command, **environment):
        one = subprocess.Popen(command or ["sleep", "600"], env=os.environ | environment)
        started.append(one)
        return one

    yield start
    for one in started:
        one.kill()
        one.wait()


def test_one_process_has_one_start_for_good(sleeper):
    one = sleeper()
    since = processes.started(one.pid)
    assert since and since == processes.started(one.pid)
    ticks, boot = since.split("@")
    assert int(ticks) > 0 and boot
    one.kill()
    one.wait()
    assert processes.started(one.pid) is None


@pytest.mark.parametrize("handles", [True, False])
def test_another_process_with_a_recorded_pid_gets_no_signal(sleeper, monkeypatch, handles):
    if not handles:
        monkeypatch.delattr(os, "pidfd_open")
    one = sleeper()
    assert not processes.send(one.pid, signal.SIGKILL, "1@another")
    assert one.poll() is None
    assert processes.send(one.pid, signal.SIGKILL, processes.started(one.pid))
    assert one.wait(120) == -signal.SIGKILL
    assert not processes.send(one.pid, signal.SIGKILL, "1@another")


@pytest.mark.parametrize("number", [0, -1])
def test_no_signal_is_sent_to_all_processes(number):
    with pytest.raises(OSError, match="is not a process number"):
        processes.send(number, signal.SIGCONT)


def test_the_agent_compares_the_start_time_before_it_sends_a_signal_or_reports_a_state(sleeper):
    one = sleeper()
    since = processes.started(one.pid)
    foreign = {"signal": one.pid, "number": signal.SIGKILL, "started": "1@another"}
    assert agent.send_signal(foreign) == {"there": False}
    assert agent.state({"state": one.pid, "started": "1@another"}) == {"state": None}
    assert agent.state({"state": one.pid, "started": since})["state"] in ("S", "R", "D")
    assert agent.send_signal(foreign | {"started": since}) == {"there": True}
    assert one.wait(120) == -signal.SIGKILL


def test_a_process_with_the_mark_is_fencepost_s_and_one_with_the_name_in_its_arguments_is_not(
    sleeper,
):
    ours = sleeper(**{MARK: "test-mark"})
    foreign = sleeper("tail", "-f", "harness.worker.program", "fencepost.workloads.client.program")
    found = processes.command(["marked", "test-mark"])
    assert found == [{"pid": ours.pid, "started": processes.started(ours.pid)}]
    assert processes.command(["show", str(ours.pid)])["mark"] == "test-mark"
    assert processes.command(["show", str(foreign.pid)])["mark"] == ""
    assert processes.command(["show", "-1"]) == {"started": None, "mark": ""}


def test_the_children_of_a_process_are_identified_by_its_start(sleeper):
    forks = "import os, time\nif os.fork() == 0: print('up', flush=True)\ntime.sleep(600)"
    parent = subprocess.Popen([sys.executable, "-c", forks], stdout=subprocess.PIPE)
    try:
        assert parent.stdout and parent.stdout.readline() == b"up\n"
        since = processes.started(parent.pid)
        (child,) = processes.command(["children", str(parent.pid), since])
        assert child["started"] == processes.started(child["pid"])
        assert processes.command(["children", str(parent.pid), "1@another"]) == []
        assert processes.send(child["pid"], signal.SIGKILL, child["started"])
    finally:
        parent.kill()
        parent.wait()
        parent.stdout.close()


def test_the_listener_of_a_port_is_found_by_its_socket_and_of_several_it_is_the_first():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        # A child that has the socket as well, like a server's that forks.
        child = subprocess.Popen(["sleep", "600"], pass_fds=[server.fileno()])
        try:
            found = processes.listener(port, root=os.getpid())
            assert found["pid"] == os.getpid()
            assert {os.getpid(), child.pid} <= set(found["tree"])
        finally:
            child.kill()
            child.wait()
    assert processes.listener(port, root=os.getpid())["pid"] is None


def test_an_unreaped_process_counts_as_dead(sleeper):
    one = sleeper()
    assert processes.lives(one.pid)
    one.kill()
    os.waitid(os.P_PID, one.pid, os.WEXITED | os.WNOWAIT)
    assert not processes.lives(one.pid)
    one.wait()
    assert not processes.lives(one.pid)
