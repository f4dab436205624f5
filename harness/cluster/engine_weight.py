"""Gives all containers together their share of the processors, where fencepost starts the engine.

Without systemd, the engine puts every container below one cgroup, which weighs as much as one
session of processes: next to eight busy programs, all nodes of a cluster would share a ninth of the
machine. The weight has an effect only while processors are short. It is a property of that cgroup,
so both end together: when the machine restarts, or with `rmdir` after the engine was stopped.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

_ROOT = Path("/sys/fs/cgroup")
_FOLDER = "docker"
_TIMES = 8
"""As many sessions as the containers weigh: about one for each node of a cluster."""
_USUAL_SHARES, _USUAL_WEIGHT = 1024, 100  # of cgroup version 1, and of version 2


def give_weight() -> None:
    """Set the weight of the engine's cgroup; leave it where this machine does not allow that."""
    # Also without the rights, in a container with read-only cgroups, or without the controller.
    with contextlib.suppress(OSError):
        if (_ROOT / "cgroup.controllers").is_file():
            (_ROOT / "cgroup.subtree_control").write_text("+cpu")
            _write(_ROOT / _FOLDER / "cpu.weight", _USUAL_WEIGHT)
        elif (_ROOT / "cpu").is_dir():
            _write(_ROOT / "cpu" / _FOLDER / "cpu.shares", _USUAL_SHARES)


def _write(file: Path, usual: int) -> None:
    """Set a weight that still is the usual one; another one was chosen for this machine."""
    file.parent.mkdir(exist_ok=True)  # the engine makes it with its first container
    if int(file.read_text()) == usual:
        file.write_text(str(_TIMES * usual))
