"""The command that starts a client on its node.

The client runs under a pump, which takes all that it writes, and under the skew that a clock
fault left for its node, if one is on.
"""

from __future__ import annotations

from fencepost.harness.remote.processes import CLIENT
from fencepost.node.places import CODE_PATH, LIBRARIES, MARK, PROGRAM_PATH, PYTHON
from fencepost.workloads.client import PROGRAM
from fencepost.workloads.contract.locktype import LockType

# The mark by which `fencepost heal` recognizes it.
_ENV = ("env", f"{MARK}={CLIENT}")
_PUMP = (PYTHON, "-m", "fencepost.workloads.client.pump")
_GATE = (PYTHON, "-m", "fencepost.workloads.client.gate")
_LAUNCH = (PROGRAM_PATH, "launch")


def command(
    lock: LockType, packages: str = "", code: str = CODE_PATH, gated: bool = False
) -> tuple[str, ...]:
    """Return the lock's own program, or fencepost's in the Python environment that the lock's
    library needs.

    `packages` is a folder of packages that precede those of that environment; `code` the places of
    fencepost's code and of other packages', as in PYTHONPATH. `gated`: the program's messages are
    failpoints.
    """
    pump = (*_ENV, f"PYTHONPATH={code}", *_PUMP, *(_GATE if gated else ()), *_LAUNCH)
    if lock.program:
        return (*pump, *lock.program)
    python = f"{LIBRARIES}/{lock.library}/bin/python" if lock.library else PYTHON
    path = ("env", f"PYTHONPATH={code}:{packages}") if packages else ()
    return (*pump, *path, python, "-m", PROGRAM)
