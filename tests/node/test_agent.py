"""What runs a node's commands: those of our own are called, and not started."""

from __future__ import annotations

import json
import subprocess

import pytest

from fencepost.compose.node import agent, vdso


@pytest.fixture
def no_process(monkeypatch):
    def start(*_, **__):
        raise AssertionError("a process was started")

    monkeypatch.setattr(subprocess, "run", start)


def run(*words):
    return agent.run({"run": list(words), "timeout_s": 5})


def test_our_own_programs_are_called(no_process):
    answer = run("fencepost-node", "clocks", "node", "wall")
    assert answer["code"] == 0
    assert set(json.loads(answer["out"])) == {"low_ns", "high_ns"}


def test_what_they_can_not_do_is_an_exit_code_with_the_reason(no_process, tmp_path, monkeypatch):
    monkeypatch.setattr(vdso, "FILE", str(tmp_path / "skew"))
    answer = run("fencepost-node", "vdso", "set", str(2**22 + 1), "--clocks", "wall")
    assert (answer["code"], answer["out"]) == (1, "")
    assert "No such file" in answer["err"]
    answer = run("fencepost-node", "vdso", "set", "1", "--clocks", "cpu")
    assert answer["code"] == 1


def test_arguments_that_they_do_not_know_end_nothing_but_the_call(no_process):
    answer = run("fencepost-node", "vdso", "swing")
    assert answer["code"] == 2
    assert "invalid choice" in answer["err"]


def test_other_programs_are_started():
    assert run("echo", "vdso")["out"] == "vdso\n"
