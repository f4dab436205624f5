"""What this machine has, and lacks, for a run: looked at before a long one finds out.

Nothing is installed, started or changed. Each look gives a Finding, with what to do about it.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from fencepost.harness.cluster import docker_engine, image
from fencepost.harness.errors import Crashed

_GB = 1 << 30
# The image has 2 GB, and is built beside its layers; servers and clients may take 2 GB each at the
# most, and take a tenth of it.
_IMAGE_GB, _RESULTS_GB, _MEMORY_GB = 6, 1, 2
# The vDSO of these is rewritten where a clock fault is asked.
_MACHINES = ("x86_64", "aarch64")
_SLOW_CLOCKS = ("acpi_pm", "hpet", "pit", "jiffies")
# How far the two clocks may part within the look, and how long it takes.
_LOOK_S, _APART_S = 0.2, 0.02


@dataclass(frozen=True)
class Finding:
    """`ok`: it is there; None: only some faults need it. `how`: what was found, or what to do."""

    ok: bool | None
    what: str
    how: str


def findings(results: Path) -> Iterator[Finding]:
    """Look at everything, one after the other; `results` is where runs are to be stored."""
    yield _python()
    found, there = _engine()
    yield found
    if there:
        yield _image()
    looks: tuple[Callable[[], Finding], ...] = (
        _memory,
        lambda: _room("room for the image", Path("/var/lib/docker"), _IMAGE_GB),
        lambda: _room("room for results", results, _RESULTS_GB),
        _clock,
        _skew,
        _fuse,
        _cgroups,
        _firewall,
        _compose,
        _pip,
    )
    for look in looks:
        yield look()


def _python() -> Finding:
    version = platform.python_version()
    return Finding(sys.version_info >= (3, 11), "Python 3.11 or newer", version)


def _engine() -> tuple[Finding, bool]:
    what = "a Docker engine, and the right to use it"
    try:
        found = docker_engine.find()
    except docker_engine.NoEngine as error:
        if os.geteuid() == 0 and docker_engine.is_debian():
            return Finding(True, what, "none yet: the first run installs docker.io"), False
        how = f"{error} Install Docker Engine"
        return Finding(False, what, how), False
    except Crashed as error:
        return Finding(False, what, str(error)), False
    return Finding(True, what, f"Docker {found.version}"), True


def _image() -> Finding:
    what = "the nodes' image"
    try:
        name = image.built()
    except Crashed as error:
        return Finding(False, what, str(error))
    if name is None:
        how = (
            "not built yet: the first run builds it (some minutes; needs a way to Debian and PyPI)"
        )
        return Finding(True, what, how)
    return Finding(True, what, name)


def _memory() -> Finding:
    lines = Path("/proc/meminfo").read_text().splitlines()
    sizes = dict(line.split(":", 1) for line in lines)
    free = int(sizes["MemAvailable"].split()[0]) << 10
    return _enough(f"{_MEMORY_GB} GB of memory", free, _MEMORY_GB, "end what else runs here")


def _room(what: str, folder: Path, gigabytes: int) -> Finding:
    there = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    free = shutil.disk_usage(there).free
    return _enough(f"{what}, {gigabytes} GB", free, gigabytes, f"make room below {there}")


def _enough(what: str, free: int, gigabytes: int, otherwise: str) -> Finding:
    shown = f"{free / _GB:.1f} GB are free"
    enough = free >= gigabytes * _GB
    return Finding(enough, what, shown if enough else f"{shown}: {otherwise}")


def _clock() -> Finding:
    """A monotonic clock that is fine and cheap, and a wall clock that goes at its pace."""
    what = "a clock to order events by"
    source = Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")
    name = source.read_text().strip() if source.is_file() else "not named by the kernel"
    if name in _SLOW_CLOCKS:
        how = f"the kernel's clock source is {name}, which is slow: boot with tsc or kvm-clock"
        return Finding(False, what, how)
    wall, monotonic = time.time(), time.monotonic()
    time.sleep(_LOOK_S)
    apart_s = abs((time.time() - wall) - (time.monotonic() - monotonic))
    if apart_s > _APART_S:
        how = f"the wall clock moved by {apart_s:.3f} s in {_LOOK_S:g} s: wait until it is set"
        return Finding(False, what, how)
    return Finding(True, what, f"clock source {name}")


def _skew() -> Finding:
    machine = platform.machine()
    how = machine if machine in _MACHINES else f"{machine}: no clock faults here but of Redis"
    return Finding(machine in _MACHINES or None, "clock faults: x86_64 or aarch64", how)


def _fuse() -> Finding:
    there = Path("/dev/fuse").exists()
    how = "/dev/fuse" if there else "no /dev/fuse (`modprobe fuse`): no `power` faults until then"
    return Finding(there or None, "power faults: file systems in user space", how)


def _cgroups() -> Finding:
    root = Path("/sys/fs/cgroup")
    there = (root / "cgroup.controllers").is_file() or (root / "cpu").is_dir()
    how = "cgroups" if there else "the kernel limits no CPU time here: no `cpu` faults"
    return Finding(there or None, "cpu faults: cgroups", how)


def _firewall() -> Finding:
    """Partitions are iptables rules in the nodes, which the kernel here has to know."""
    what = "partitions: the kernel's packet filter"
    if os.geteuid() != 0 or shutil.which("iptables") is None:
        return Finding(True, what, "not looked at: that takes root and iptables")
    done = subprocess.run(
        ["iptables", "-w", "2", "-n", "-L", "INPUT"], capture_output=True, text=True, check=False
    )
    if done.returncode:
        said = done.stderr.strip().splitlines()[:1]
        return Finding(False, what, f"{' '.join(said)}: load it (`modprobe ip_tables`)")
    return Finding(True, what, "iptables")


def _compose() -> Finding:
    found = docker_engine.compose_there()
    how = " ".join(found) or "none here: install Docker's Compose plugin before you use --compose"
    return Finding(bool(found) or None, "--compose: Docker's Compose", how)


def _pip() -> Finding:
    there = find_spec("pip") is not None
    how = "pip" if there else f"no pip beside fencepost: `{sys.executable} -m ensurepip`"
    return Finding(there or None, "--requirements: pip", how)
