"""Starts the client programs of a hunt on this machine (hunt/live)."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path, PurePosixPath

from fencepost import processors
from fencepost.harness.errors import BadArguments
from fencepost.harness.hunting import java
from fencepost.harness.package import PACKAGE
from fencepost.harness.spec.spec import Spec
from fencepost.harness.userlock.user_lock import UserLock
from fencepost.hunt.live.conductor import Conductor
from fencepost.hunt.live.look import Look, look_at
from fencepost.hunt.live.program import Command
from fencepost.hunt.lock_error import LockError
from fencepost.hunt.sim.setting import Setting
from fencepost.hunt.sim.unknown import Unknown
from fencepost.workloads.contract.guard import Rule
from fencepost.workloads.contract.locktype import LockType
from fencepost.workloads.resources.redis_register import write_script
from fencepost.workloads.resources.registry import GUARDS

LANES = 20
"""Schedules that are played side by side, for each processor: they mostly wait."""
TTL_MS, BOUND_S = 150, 1.5
"""The default lease, and the bound of liveness, where real time passes."""
_LONG_TTL_MS, _LONG_BOUND_S = 2000, 5.0
"""The same where time jumps, as in a simulation: a long lease costs nothing there. Most time-outs,
up to a second, then end while their lease runs."""
_ON_NODES = "/run/fencepost/code/fencepost/"
_LIBRARIES = "/opt/fencepost/libraries/"
_NODE = "nodejs"
"""Debian's name of node, which nodes have."""


def conductor(spec: Spec, setting: Setting, lanes: int | None) -> Conductor:
    """Return the conductor of a hunt; it plays this many schedules side by side.

    Raises:
        BadArguments: the program cannot run on this machine.
    """
    # Not on Windows, where a hunt of programs is refused, and others are not.
    from fencepost.harness.hunting.clocks import of_program

    rule = GUARDS[spec.guard].rules.get("lua", Rule())
    made = _of_user(spec) if spec.own is not None else _of_library(spec)
    lanes = lanes or LANES * processors.count()
    return Conductor(setting, made, write_script(rule), lanes, of_program)


def looked_at(spec: Spec, setting: Setting) -> Look | None:
    """Return a look at the program of a user lock; None if it cannot be played, of which the hunt
    gives the reason."""
    try:
        with conductor(spec, setting, 1) as made:
            return look_at(made)
    except (BadArguments, LockError, Unknown):
        return None


def usual_times(own: UserLock) -> tuple[int, float]:
    """Return the default lease (ms) of a user lock's program, and the bound of liveness (s)."""
    jumps = _jumps(own.program[0], _folder(own))
    return (_LONG_TTL_MS, _LONG_BOUND_S) if jumps else (TTL_MS, BOUND_S)


def usual_times_of_library(lock: LockType) -> tuple[int, float]:
    """Return the same for a lock of the registry. The timeouts of a library need a longer lease
    than those of a program that was written for hunts."""
    ttl_ms, word = 2 * max(TTL_MS, lock.least_ttl_ms), _words(lock)[0]
    if _jumps("node" if word == _NODE else word, Path.cwd()):
        return max(ttl_ms, _LONG_TTL_MS), _LONG_BOUND_S
    return ttl_ms, BOUND_S


def _jumps(word: str, folder: Path) -> bool:
    """Return whether time jumps in a hunt of the program that this word starts in a folder, which
    needs Linux, and Node.js, Go or a JVM."""
    if not sys.platform.startswith("linux"):
        return False
    from fencepost.harness.hunting.clocks import may_jump

    found = str(folder / word) if "/" in word else shutil.which(word)
    try:
        return found is not None and may_jump(Path(found))
    except OSError:
        return False  # its start says why


def _of_user(spec: Spec) -> Command:
    """Return the command of a user lock; it runs in the folder that was named with --ship."""
    own = spec.own
    assert own is not None
    folder = _folder(own)
    _must_exist(own.program[0], folder, spec.lock)
    return Command(own.program, folder, {})


def _folder(own: UserLock) -> Path:
    """Return the folder that was named with --ship."""
    for name, path in own.files.items():
        return path.absolute().parents[len(PurePosixPath(name).parts) - 1]
    return Path.cwd()


def _of_library(spec: Spec) -> Command:
    """Return the command of a lock of the registry: on nodes, its paths are others."""
    here = tuple(word.replace(_ON_NODES, f"{PACKAGE}/") for word in _words(spec.lock_type))
    if here[0] == "java":
        library = spec.lock_type.library
        compiled = java.command(spec.lock, library, here, f"{_LIBRARIES}{library}")
        return Command(compiled, Path.cwd(), {})
    if here[0] != _NODE:
        raise BadArguments(
            f"{spec.lock} cannot be hunted: its program runs on fencepost's nodes only. "
            f"`fencepost test {spec.lock}` runs it on real servers"
        )
    _must_exist("node", Path.cwd(), spec.lock)
    name = spec.lock_type.distribution
    found = [path for path in _modules(spec.lock) if (path / name).is_dir()]
    if not found:
        raise BadArguments(
            f"{spec.lock} needs npm's {name} and ioredis on this machine: run `npm install "
            f"{name}@4.2.0 ioredis` here, or set NODE_PATH to a folder that has both"
        )
    return Command(("node", *here[1:]), Path.cwd(), {"NODE_PATH": str(found[0])})


def _words(lock: LockType) -> list[str]:
    """Return the words of a program on the nodes, without its environment."""
    return [word for word in lock.program if "=" not in word and word != "env"]


def _modules(lock: str) -> list[Path]:
    """Return the folders in which Node's packages may be."""
    given = [Path(path) for path in os.environ.get("NODE_PATH", "").split(os.pathsep) if path]
    return [*given, Path.cwd() / "node_modules", Path(_LIBRARIES, lock, "node_modules")]


def _must_exist(word: str, folder: Path, lock: str) -> None:
    found = (folder / word).is_file() if "/" in word else shutil.which(word)
    if not found:
        raise BadArguments(
            f"{lock}: {word} is not on this machine, and a hunt runs the program here: install it, "
            "or build the program"
        )
