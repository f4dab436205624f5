"""The command that starts a client on its node.

The client runs under a pump, which takes all that it writes, and under the skew that a clock
fault left for its node, if one is on.
"""

from __future__ import annotations

from fencepost.compose.node.places import CODE, LIBRARIES, MARK, PROGRAM_PATH, PYTHON
from fencepost.harness.remote.processes import CLIENT
from fencepost.workloads.client import PROGRAM
from fencepost.workloads.locks.locktype import LockType

_PUMP = (
    "env",
    # By which `fencepost heal` knows it again.
    f"{MARK}={CLIENT}",
    f"PYTHONPATH={CODE}",
    PYTHON,
    "-m",
    "fencepost.workloads.client.pump",
    PROGRAM_PATH,
    "launch",
)


def command(lock: LockType) -> tuple[str, ...]:
    """The lock's own program, or ours in the Python environment that the lock's library needs."""
    if lock.program:
        return (*_PUMP, *lock.program)
    python = f"{LIBRARIES}/{lock.library}/bin/python" if lock.library else PYTHON
    return (*_PUMP, python, "-m", PROGRAM)
