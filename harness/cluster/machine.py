"""Checks whether this machine can carry out a run, so that a long run does not fail late.

Nothing is installed, started or changed. Each check returns a Finding with what to do.
"""

from __future__ import annotations

import os
import platform
import shutil
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from fencepost.harness.cluster import docker_calls, docker_engine, image
from fencepost.harness.errors import Crashed
from fencepost.nemesis.families import FAMILIES

_GB = 1 << 30
# The image has 2 GB, in addition to the layers of its build. Servers and clients are limited to
# 2 GB each, and use about a tenth of that.
_IMAGE_GB, _RESULTS_GB, _MEMORY_GB = 6, 1, 2
_SLOW_CLOCKS = ("acpi_pm", "hpet", "pit", "jiffies")
# The maximum drift between the two clocks during the check, and the duration of the check.
_LOOK_S, _APART_S = 0.2, 0.02
_FIREWALL_S = 20.0


@dataclass(frozen=True)
class Finding:
    """The result of a check. `ok` None: only some faults need it. `how`: the details or remedy."""

    ok: bool | None
    what: str
    how: str


def findings(results: Path) -> Iterator[Finding]:
    """Yield the result of each check; `results` is the folder for the results of runs."""
    yield _python()
    found, there = _engine()
    yield found
    if there:
        yield _image()
    yield _memory()
    yield _room("room for the image", Path("/var/lib/docker"), _IMAGE_GB)
    yield _room("room for results", results, _RESULTS_GB)
    yield _clock()
    yield from of_faults()
    yield _firewall()
    yield _optional(
        "--compose: Docker Compose",
        " ".join(docker_engine.compose_there()),
        "not installed: install Docker's Compose plugin to use --compose",
    )
    yield _optional(
        "--requirements: pip",
        "pip" if find_spec("pip") else "",
        f"not installed: `{sys.executable} -m ensurepip`",
    )


def of_faults() -> Iterator[Finding]:
    """Yield the parts of the machine that only faults of some families need."""
    for family in FAMILIES.sound()[0]:
        if family.machine is not None:
            there, words = family.machine.look()
            what = f"{family.name} faults: {family.machine.what}"
            yield Finding(there or None, what, words)


def _optional(what: str, there: str, otherwise: str) -> Finding:
    """Return the finding about a part that only some faults or options need; `there` is empty if it
    is missing."""
    return Finding(True if there else None, what, there or otherwise)


def _python() -> Finding:
    version = platform.python_version()
    return Finding(sys.version_info >= (3, 11), "Python 3.11 or newer", version)


def _engine() -> tuple[Finding, bool]:
    what = "a Docker engine, and the right to use it"
    try:
        found = docker_engine.find()
    except docker_engine.NoEngine as error:
        if os.geteuid() == 0 and docker_engine.is_debian():
            return Finding(True, what, "not installed: the first run installs docker.io"), False
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
        how = "not built: the first run builds it (some minutes; needs access to Debian and PyPI)"
        return Finding(True, what, how)
    return Finding(True, what, name)


def _memory() -> Finding:
    lines = Path("/proc/meminfo").read_text().splitlines()
    sizes = dict(line.split(":", 1) for line in lines)
    free = int(sizes["MemAvailable"].split()[0]) << 10
    return _enough(f"{_MEMORY_GB} GB of memory", free, _MEMORY_GB, "end other programs")


def _room(what: str, folder: Path, gigabytes: int) -> Finding:
    there = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    free = shutil.disk_usage(there).free
    return _enough(f"{what}, {gigabytes} GB", free, gigabytes, f"make room below {there}")


def _enough(what: str, free: int, gigabytes: int, otherwise: str) -> Finding:
    shown = f"{free / _GB:.1f} GB are free"
    enough = free >= gigabytes * _GB
    return Finding(enough, what, shown if enough else f"{shown}: {otherwise}")


def _clock() -> Finding:
    """Check for a fast monotonic clock, and for a wall clock that runs at the same rate."""
    what = "a clock to order events"
    source = Path("/sys/devices/system/clocksource/clocksource0/current_clocksource")
    name = source.read_text().strip() if source.is_file() else "unknown"
    if name in _SLOW_CLOCKS:
        how = f"the kernel's clock source is {name}, which is slow: boot with tsc or kvm-clock"
        return Finding(False, what, how)
    wall, monotonic = time.time(), time.monotonic()
    time.sleep(_LOOK_S)
    apart_s = abs((time.time() - wall) - (time.monotonic() - monotonic))
    if apart_s > _APART_S:
        how = f"the wall clock drifted by {apart_s:.3f} s in {_LOOK_S:g} s: wait until it is set"
        return Finding(False, what, how)
    return Finding(True, what, f"clock source {name}")


def _firewall() -> Finding:
    """Check that this kernel supports iptables rules, which partitions use."""
    what = "partitions: the kernel's packet filter"
    if os.geteuid() != 0 or shutil.which("iptables") is None:
        return Finding(True, what, "not checked: that needs root and iptables")
    try:
        done = docker_calls.command(["iptables", "-w", "2", "-n", "-L", "INPUT"], _FIREWALL_S)
    except docker_calls.Refused as error:
        return Finding(False, what, str(error))
    if done.returncode:
        stderr = done.stderr.strip().splitlines()[:1]
        return Finding(False, what, f"{' '.join(stderr)}: load it (`modprobe ip_tables`)")
    return Finding(True, what, "iptables")
