"""The agent of a node calls the node's own commands in its process, without starting them."""

from __future__ import annotations

import json
import os
import subprocess
import time

import pytest

from fencepost.node import agent, vdso


@pytest.fixture
def no_process(monkeypatch):
    def start(*_, **__):
        raise AssertionError("a process was started")

    monkeypatch.setattr(subprocess, "run", start)


def run(*words):
    return agent.run({"run": list(words), "timeout_s": 5})


def test_fencepost_s_own_programs_are_called_in_process(no_process):
    answer = run("fencepost-node", "clocks", "node", "wall")
    assert answer["code"] == 0
    assert set(json.loads(answer["out"])) == {"low_ns", "high_ns"}


def test_an_impossible_request_is_an_exit_code_with_the_reason(no_process, tmp_path, monkeypatch):
    monkeypatch.setattr(vdso, "FILE", str(tmp_path / "skew"))
    answer = run("fencepost-node", "vdso", "set", str(2**22 + 1), "--clocks", "wall")
    assert (answer["code"], answer["out"]) == (1, "")
    assert "No such file" in answer["err"]
    answer = run("fencepost-node", "vdso", "set", "1", "--clocks", "cpu")
    assert answer["code"] == 1


def test_unknown_arguments_end_only_the_call(no_process):
    answer = run("fencepost-node", "vdso", "swing")
    assert answer["code"] == 2
    assert "invalid choice" in answer["err"]


def test_other_programs_are_started():
    assert run("echo", "vdso")["out"] == "vdso\n"


@pytest.fixture
def verbs(monkeypatch):
    """The functions that replace the agent's verbs, by name."""
    found = {}
    monkeypatch.setattr(agent, "verb", found.__getitem__)
    return found


def test_a_server_is_started_by_a_process_that_ends_and_no_python_is_started_for_it(
    no_process, verbs
):
    verbs["start"] = lambda words: f"{words} by {os.getpid()}, child of {os.getppid()}"
    answer = run("fencepost-node", "start", "redis")
    pid = int(answer["out"].split(" by ")[1].split(",")[0])
    assert answer["out"] == f"['redis'] by {pid}, child of {os.getpid()}"
    assert answer["code"] == 0 and not os.path.exists(f"/proc/{pid}")


def test_output_of_a_verb_is_no_line_of_the_agent_s(verbs, capfd):
    verbs["version"] = lambda words: f"7.{os.write(1, b'noise')}"
    assert run("fencepost-node", "version", "redis")["out"] == "7.5"
    assert capfd.readouterr().out == ""


def test_a_verb_that_fails_has_an_exit_code_and_says_why(verbs):
    def refuse(words):
        raise OSError("the disk is full")

    verbs["wipe"] = refuse
    assert run("fencepost-node", "wipe", "redis") == {
        "code": 1, "out": "", "err": "the disk is full"
    }  # fmt: skip
    verbs["wipe"] = lambda words: {}["missing"]
    answer = run("fencepost-node", "wipe", "redis")
    assert answer["code"] == 1 and "KeyError: 'missing'" in answer["err"]


def test_a_verb_that_takes_too_long_is_ended(verbs, tmp_path):
    def hang(words):
        (tmp_path / "pid").write_text(str(os.getpid()))
        time.sleep(60)

    verbs["wipe"] = hang
    answer = agent.run({"run": ["fencepost-node", "wipe", "redis"], "timeout_s": 0.5})
    assert answer == {"error": "still running after 0.5 s"}
    assert not os.path.exists(f"/proc/{(tmp_path / 'pid').read_text()}")


def test_a_killed_command_is_distinguished_from_a_completed_one(verbs):
    verbs["wipe"] = lambda words: os.kill(os.getpid(), 9)
    assert run("fencepost-node", "wipe", "redis") == {"code": -9, "out": "", "err": "killed"}
