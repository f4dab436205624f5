"""A node's agent starts ahead of the first request, which then uses it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from fencepost.harness.remote import agent
from fencepost.harness.remote.agent import AgentRemote
from fencepost.harness.remote.remote import NoAnswer

AGENT = "from fencepost.node.agent import command; command([])"


class Here(AgentRemote):
    """A node that is this machine; `started` counts its agents."""

    def __init__(self, there: bool = True) -> None:
        super().__init__("here")
        self.started = 0
        self._there = there

    def spawn(self, argv):
        if not self._there:
            raise OSError("there is no such node")
        self.started += 1
        return subprocess.Popen(
            [sys.executable, "-c", AGENT],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
        )


def test_the_first_request_is_answered_by_the_started_agent():
    remote = Here()
    remote.begin()
    remote.begin()
    assert remote.started == 1
    assert remote.run(["echo", "said"]).out == "said\n"
    assert remote.started == 1
    remote.close()


def test_the_first_request_reports_an_unreachable_node():
    remote = Here(there=False)
    remote.begin()
    with pytest.raises(NoAnswer, match="there is no such node"):
        remote.run(["echo", "said"])


class Writing(Here):
    """A node whose agent runs this code at its first request."""

    def __init__(self, code: str) -> None:
        super().__init__()
        self._code = f"import sys; sys.stdin.readline(); out = sys.stdout.write; {code}"

    def spawn(self, argv):
        return subprocess.Popen(
            [sys.executable, "-c", self._code],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
        )


def test_a_large_answer_comes_whole(tmp_path):
    content = bytes(range(256)) * (4 << 12)
    (tmp_path / "log").write_bytes(content)
    remote = Here()
    assert remote.get(str(tmp_path / "log")) == content
    remote.close()


def test_an_answer_without_an_end_is_not_kept(monkeypatch):
    monkeypatch.setattr(agent, "_LONGEST", 1 << 20)
    remote = Writing("out('x' * (4 << 20)); out(chr(10)); sys.stdout.flush(); sys.stdin.read()")
    with pytest.raises(NoAnswer, match="its answer has 4194304 bytes, and at most 1048576 are"):
        remote.run(["echo", "said"])
    remote.close()


def test_a_node_that_writes_without_being_asked_is_not_read_further(monkeypatch):
    monkeypatch.setattr(agent, "_UNASKED", 10)
    remote = Writing("[out('{}' + chr(10)) for _ in range(10**6)]; sys.stdin.read()")
    with pytest.raises(KeyError):
        remote.run(["echo", "said"])
    reader = remote._agent._reader
    reader.join(120)
    assert not reader.is_alive()
    assert remote._agent._answers.qsize() < 1 << 16
    remote.close()


def test_an_agent_whose_child_keeps_its_streams_open_is_quoted(monkeypatch):
    monkeypatch.setattr(agent, "_END_S", 0.2)
    child = "subprocess.Popen(['sleep', '3'], stdin=-3, stdout=-3)"
    remote = Writing(f"import subprocess; {child}; sys.exit('out of ideas')")
    with pytest.raises(NoAnswer, match="out of ideas"):
        remote.run(["echo", "said"])
