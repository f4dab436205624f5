"""A node's agent starts ahead of the first request, which then uses it."""

from __future__ import annotations

import subprocess
import sys

import pytest

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
