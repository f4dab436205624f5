"""A worker's program on this machine instead of on a node."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

from fencepost.checker.history.history import read
from fencepost.harness.clients.client_program import command
from fencepost.harness.remote.processes import CLIENT
from fencepost.node import agent, processes
from fencepost.node.places import CODE_PATH, MARK, PYTHON
from fencepost.workloads.locks.registry import LOCKS
from tests import node_program

ROOT = Path(__file__).parents[2]

COMMAND = command(LOCKS["redis"])

MARKED = ("env", f"{MARK}={CLIENT}")


class Local:
    """A Remote that starts a node's programs on this machine."""

    node = "client-1"

    def __init__(self, spawn):
        self._spawn = spawn

    def spawn(self, argv):
        here = {
            PYTHON: sys.executable,
            f"PYTHONPATH={CODE_PATH}": f"PYTHONPATH={ROOT}/src",
        }
        return self._spawn(node_program.here(here.get(word, word) for word in argv))

    def signal(self, pid, number, started=None):
        return processes.send(pid, number, started)

    def state(self, pid, started=None):
        return agent.state({"state": pid, "started": started})["state"]

    def run(self, argv):
        return SimpleNamespace(out=subprocess.check_output(node_program.here(argv), text=True))


def recorded(recorder):
    return [(op.process, op.f, op.type) for op in read(recorder.path)]
