"""Little CPU time for one process: a cgroup of its own, with a quota.

    cpu limit PID SHARE    SHARE of one CPU, 0.05 say, for PID and what it forks
    cpu show PID           the quota in force on the cgroup that PID is in, and how it bit
    cpu left               whether any process, or nobody, is in such a cgroup
    cpu free               everything back to where it was, and the cgroup away

Version 1: a child of the cgroup that the process is in, with cpu.cfs_quota_us. Version 2: a
threaded child with cpu.max, because a cgroup that has processes of its own (a container's has) may
limit threaded children alone. The hierarchy is mounted where nobody looks, since the container's
view of it is read-only; on a host that root may write to, it is the same one.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from fencepost.compose.node.processes import everyone, family

MOUNT = Path("/run/fencepost/cgroup")
NAME = "fencepost"
_PERIOD_US = 50_000
# How long a loop runs that uses the quota up, so that it is seen to bite.
_BURN_S = 0.3


class Group:
    """The cgroup that is made beneath the one of a process."""

    def __init__(self, parent: str, version: int) -> None:
        self.version = version
        self.parent = _mounted(version) / parent.lstrip("/")
        self.path = self.parent / NAME

    def limit(self, pid: int, share: float) -> None:
        quota_us = max(1000, int(share * _PERIOD_US))
        if self.version == 2 and "cpu" not in _read(self.parent / "cgroup.controllers").split():
            raise OSError(
                f"the cgroup {self.parent} has no cpu controller: those above it must have cpu in "
                "their cgroup.subtree_control"
            )
        self.path.mkdir(exist_ok=True)
        if self.version == 1:
            _write(self.path / "cpu.cfs_period_us", str(_PERIOD_US))
            _write(self.path / "cpu.cfs_quota_us", str(quota_us))
        else:
            _write(self.path / "cgroup.type", "threaded")
            _write(self.parent / "cgroup.subtree_control", "+cpu")
            _write(self.path / "cpu.max", f"{quota_us} {_PERIOD_US}")
        self._enter(pid)

    def _enter(self, pid: int) -> None:
        _write(self.path / "cgroup.procs", str(pid))
        # What it forks from now on is in here; what it forked before may end meanwhile.
        for child in family(pid) - {pid}:
            with suppress(ProcessLookupError):
                _write(self.path / "cgroup.procs", str(child))

    def share(self) -> float | None:
        """Of one CPU; None where nothing limits it."""
        if self.version == 1:
            quota, period = (_read(self.path / f"cpu.cfs_{n}_us") for n in ("quota", "period"))
        else:
            quota, period = _read(self.path / "cpu.max").split()
        return None if quota in ("-1", "max") else int(quota) / int(period)

    def throttled(self) -> int:
        """How often its processes had to wait for the next period."""
        rows = dict(row.split() for row in _read(self.path / "cpu.stat").splitlines())
        return int(rows["nr_throttled"])

    def burn(self) -> None:
        """Use the quota up."""
        loop = subprocess.Popen(["timeout", str(_BURN_S), "sh", "-c", "while :; do :; done"])
        self._enter(loop.pid)
        loop.wait()

    def free(self) -> None:
        """Raises OSError where something stays in it."""
        # A threaded group does not list its processes; any thread's id moves the whole of one.
        listed = "cgroup.procs" if self.version == 1 else "cgroup.threads"
        for inside in _read(self.path / listed).split():
            with suppress(ProcessLookupError):
                _write(self.parent / "cgroup.procs", inside)
        self._remove()
        if self.version == 2 and not any(one.is_dir() for one in self.parent.iterdir()):
            _write(self.parent / "cgroup.subtree_control", "-cpu")

    def _remove(self) -> None:
        end = time.monotonic() + 2
        while True:
            try:
                return self.path.rmdir()
            except OSError:
                # What has just ended is still counted for a moment.
                if time.monotonic() > end:
                    raise
                time.sleep(0.02)


def command(words: list[str]) -> dict[str, Any]:
    """Carry out a verb. OSError where this kernel, or the node's rights, do not allow it."""
    parser = argparse.ArgumentParser("cpu")
    verbs = parser.add_subparsers(dest="verb", required=True)
    for verb in ("limit", "show"):
        one = verbs.add_parser(verb)
        one.add_argument("pid", type=int)
        if verb == "limit":
            one.add_argument("share", type=float)
    verbs.add_parser("free")
    verbs.add_parser("left")
    given = parser.parse_args(words)
    if given.verb == "free":
        return free()
    if given.verb == "left":
        return {"left": left()}
    group = of(given.pid)
    if given.verb == "limit":
        if group.path.name != NAME:
            raise OSError(f"no cgroup for pid {given.pid}")
        group.limit(given.pid, given.share)
        before = group.throttled()
        group.burn()
        return show(given.pid) | {"throttled": group.throttled() - before}
    return show(given.pid)


def show(pid: int) -> dict[str, Any]:
    """What the kernel says of the cgroup that a process is in."""
    path, version = _cgroup(pid)
    if Path(path).name != NAME:
        return {"cgroup": path, "share": None, "throttled": 0}
    group = Group(str(Path(path).parent), version)
    return {"cgroup": path, "share": group.share(), "throttled": group.throttled()}


def of(pid: int) -> Group:
    """The group for a process, whether or not it is in it already."""
    path, version = _cgroup(pid)
    return Group(str(Path(path).parent) if Path(path).name == NAME else path, version)


def free() -> dict[str, Any]:
    """Of every process that is in such a cgroup; how many there were."""
    inside = _inside()
    for pid in inside[:1]:
        of(pid).free()
    if not inside and left():
        of(os.getpid()).free()
    return {"freed": len(inside)}


def left() -> bool:
    """Also one whose processes have all ended: beneath our own cgroup, as theirs was."""
    if _inside():
        return True
    # Where nothing was ever mounted nothing was ever made.
    return any(map(os.path.ismount, MOUNT.glob("v?"))) and of(os.getpid()).path.is_dir()


def _inside() -> list[int]:
    """The processes that are in such a cgroup."""
    found = []
    for pid in everyone():
        try:
            path, _ = _cgroup(pid)
        except (FileNotFoundError, ProcessLookupError):
            continue
        if Path(path).name == NAME:
            found.append(pid)
    return found


def _cgroup(pid: int) -> tuple[str, int]:
    """The path of a process' cgroup for CPU time, in its hierarchy, and the version of that."""
    unified = "/"
    for row in Path(f"/proc/{pid}/cgroup").read_text().splitlines():
        _, controllers, path = row.split(":", 2)
        if "cpu" in controllers.split(","):
            return path, 1
        if not controllers:
            unified = path
    return unified, 2


def _mounted(version: int) -> Path:
    """The hierarchy, mounted where it can be written to."""
    place = MOUNT / f"v{version}"
    if not os.path.ismount(place):
        place.mkdir(parents=True, exist_ok=True)
        kind = ("-t", "cgroup", "-o", "cpu") if version == 1 else ("-t", "cgroup2")
        done = subprocess.run(
            ["mount", *kind, "fencepost", str(place)], capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise OSError(done.stderr.strip())
    return place


def _read(path: Path) -> str:
    return path.read_text().strip()


def _write(path: Path, text: str) -> None:
    # One write, unbuffered: the kernel answers each by itself.
    fd = os.open(path, os.O_WRONLY)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)
