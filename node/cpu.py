"""Limits the CPU time of one process: a new cgroup with a quota.

    cpu limit PID SHARE    give PID and its children SHARE of one CPU, for example 0.05
    cpu show PID           show the quota of PID's cgroup, and how often it throttled
    cpu left               show whether fencepost's cgroup or mount is left over
    cpu free               move everything back, and remove cgroup and mount

Version 1: a child of the process' cgroup, with cpu.cfs_quota_us. Version 2: a threaded child with
cpu.max, because a cgroup that contains processes (a container's does) may limit only threaded
children. The hierarchy is mounted at a private place, because the container's view of it is
read-only; on a host where root may write, it is the same hierarchy.

A name does not prove who made a cgroup. A file records fencepost's with the number that the kernel
gave it; any other is left alone.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from fencepost.node.processes import everyone, family

MOUNT = Path("/run/fencepost/cgroup")
NAME = "fencepost"
_PERIOD_US = 50_000
# Duration of a loop that uses up the quota, to prove that it throttles.
_BURN_S = 0.3


class Group:
    """The cgroup made below that of a process."""

    def __init__(self, parent: str, version: int) -> None:
        self.within = f"{parent.rstrip('/')}/{NAME}"
        self.version = version
        self.parent = _mounted(version) / parent.lstrip("/")
        self.path = self.parent / NAME

    def make(self) -> None:
        """Make it and record it. OSError if another exists already."""
        if (made := _made()) is not None and made.path == self.path:
            return
        try:
            self.path.mkdir()
        except FileExistsError:
            raise OSError(f"{self.path} exists, and was not made by fencepost") from None
        # If CPU time is already distributed to the children above, it stays so.
        given = self.version == 2 and "cpu" in _read(self.parent / "cgroup.subtree_control").split()
        made_as = {"parent": self.within.removesuffix(f"/{NAME}"), "version": self.version}
        inode = self.path.stat().st_ino
        _record().write_text(json.dumps({**made_as, "inode": inode, "given": given}))

    def inside(self) -> list[int]:
        """Return the processes in it."""
        found = []
        for pid in everyone():
            with suppress(FileNotFoundError, ProcessLookupError):
                if _cgroup(pid) == (self.within, self.version):
                    found.append(pid)
        return found

    def limit(self, pid: int, share: float) -> None:
        quota_us = max(1000, int(share * _PERIOD_US))
        if self.version == 2 and "cpu" not in _read(self.parent / "cgroup.controllers").split():
            raise OSError(
                f"the cgroup {self.parent} has no cpu controller: those above it must have cpu in "
                "their cgroup.subtree_control"
            )
        self.make()
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
        # Children forked from now on are in here; those forked before may end meanwhile.
        for child in family(pid) - {pid}:
            with suppress(ProcessLookupError):
                _write(self.path / "cgroup.procs", str(child))

    def share(self) -> float | None:
        """Return the quota as a share of one CPU; None without a limit."""
        if self.version == 1:
            quota, period = (_read(self.path / f"cpu.cfs_{n}_us") for n in ("quota", "period"))
        else:
            quota, period = _read(self.path / "cpu.max").split()
        return None if quota in ("-1", "max") else int(quota) / int(period)

    def throttled(self) -> int:
        """Return how often its processes had to wait for the next period."""
        rows = dict(row.split() for row in _read(self.path / "cpu.stat").splitlines())
        return int(rows["nr_throttled"])

    def burn(self) -> None:
        """Use up the quota."""
        loop = subprocess.Popen(["timeout", str(_BURN_S), "sh", "-c", "while :; do :; done"])
        self._enter(loop.pid)
        loop.wait()

    def free(self, given: bool) -> None:
        """Remove it; `given`: CPU time was already distributed above it. OSError if a process stays
        in it."""
        # A threaded group does not list its processes; moving any thread moves the whole process.
        listed = "cgroup.procs" if self.version == 1 else "cgroup.threads"
        for inside in _read(self.path / listed).split():
            with suppress(ProcessLookupError):
                _write(self.parent / "cgroup.procs", inside)
        self._remove()
        others = any(one.is_dir() for one in self.parent.iterdir())
        if self.version == 2 and not given and not others:
            _write(self.parent / "cgroup.subtree_control", "-cpu")

    def _remove(self) -> None:
        end = time.monotonic() + 2
        while True:
            try:
                return self.path.rmdir()
            except OSError:
                # A process that has just ended is still counted for a moment.
                if time.monotonic() > end:
                    raise
                time.sleep(0.02)


def command(words: list[str]) -> dict[str, Any]:
    """Run a verb. OSError if it is unknown, or the kernel or the node's rights do not allow it."""
    match words:
        case ["limit", pid, share]:
            group = of(int(pid))
            group.limit(int(pid), float(share))
            before = group.throttled()
            group.burn()
            return show(int(pid)) | {"throttled": group.throttled() - before}
        case ["show", pid]:
            return show(int(pid))
        case ["left"]:
            return {"left": left()}
        case ["free"]:
            return free()
    raise OSError(f"unknown verb cpu {' '.join(words)}; use limit, show, left or free")


def show(pid: int) -> dict[str, Any]:
    """Return the kernel's figures for the cgroup of a process."""
    path, version = _cgroup(pid)
    group = _made()
    if group is None or (group.within, group.version) != (path, version):
        return {"cgroup": path, "share": None, "throttled": 0}
    return {"cgroup": path, "share": group.share(), "throttled": group.throttled()}


def of(pid: int) -> Group:
    """Return the group for a process, whether or not it is in it already."""
    path, version = _cgroup(pid)
    made = _made()
    if made is not None and (made.within, made.version) == (path, version):
        return made
    return Group(path, version)


def free() -> dict[str, Any]:
    """Undo `limit`, also if all its processes have ended; return the number of processes moved."""
    group, inside = _made(), 0
    if group is not None:
        inside = len(group.inside())
        group.free(bool(_recorded()["given"]))
    _record().unlink(missing_ok=True)
    for place in _mounts():
        _run("umount", str(place))
        place.rmdir()
    if MOUNT.is_dir():
        MOUNT.rmdir()
    return {"freed": inside}


def left() -> bool:
    return _made() is not None or bool(_mounts())


def _made() -> Group | None:
    """Return the group that fencepost made, or None."""
    try:
        known = _recorded()
        group = Group(known["parent"], known["version"])
        # The number distinguishes it from another of the same name.
        return group if group.path.stat().st_ino == known["inode"] else None
    except (OSError, ValueError, KeyError):
        return None


def _recorded() -> dict[str, Any]:
    known: dict[str, Any] = json.loads(_record().read_text())
    return known


def _record() -> Path:
    """Return the file that records fencepost's cgroup."""
    return MOUNT.with_name(f"{MOUNT.name}.json")


def _mounts() -> list[Path]:
    """Return the places where fencepost has mounted a hierarchy."""
    return [place for place in MOUNT.glob("v?") if os.path.ismount(place)]


def _cgroup(pid: int) -> tuple[str, int]:
    """Return the path of a process' cgroup for CPU time in its hierarchy, and the version of
    that."""
    unified = "/"
    for row in Path(f"/proc/{pid}/cgroup").read_text().splitlines():
        _, controllers, path = row.split(":", 2)
        if "cpu" in controllers.split(","):
            return path, 1
        if not controllers:
            unified = path
    return unified, 2


def _mounted(version: int) -> Path:
    """Return the hierarchy, mounted at a place where it can be written."""
    place = MOUNT / f"v{version}"
    if not os.path.ismount(place):
        place.mkdir(parents=True, exist_ok=True)
        kind = ("-t", "cgroup", "-o", "cpu") if version == 1 else ("-t", "cgroup2")
        _run("mount", *kind, "fencepost", str(place))
    return place


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise OSError(done.stderr.strip())


def _read(path: Path) -> str:
    return path.read_text().strip()


def _write(path: Path, text: str) -> None:
    # One unbuffered write: the kernel reports an error for each write.
    fd = os.open(path, os.O_WRONLY)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)
