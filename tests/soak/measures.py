"""Measure a run's possible leftovers: in this process, on this machine, in the nodes."""

from __future__ import annotations

import ctypes
import gc
import os
import shutil
import subprocess
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path

import docker

from fencepost.harness.cluster import labels
from fencepost.node.places import LOGS, RUN
from tests.soak.judgement import Bound

MB = 1 << 20
MEMORY = "memory (MB)"
BYTES = "nodes: bytes of files (MB)"
BOUNDS = {
    MEMORY: Bound(
        0.25,
        "a run that is kept, with its history, takes some MB, and a night of an hour's runs may "
        "take no more than some MB together",
    ),
    BYTES: Bound(0.25, "the servers' logs of the last run, which differ with its faults"),
}


def process() -> dict[str, float]:
    """Measure this process: used memory, file handles, threads, children, temporary files."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    return {
        MEMORY: resident(os.getpid()) / MB,
        "file handles": len(os.listdir("/proc/self/fd")),
        "threads": len(os.listdir("/proc/self/task")),
        "threads of Python": threading.active_count(),
        "processes that it started": _least(lambda: len(descendants(os.getpid()))),
        "temporary files": _files([Path(tempfile.gettempdir())])[0],
    }


def machine() -> dict[str, float]:
    """Measure this machine: Docker's objects, rules, chains, mounts."""
    client = docker.from_env()
    try:
        rules = [line for tool in ("iptables-save", "ip6tables-save") for line in _said(tool)]
        return {
            "containers": len(client.containers.list(all=True)),
            "networks": len(client.networks.list()),
            "volumes": len(client.volumes.list()),
            "host: iptables chains": sum(line.startswith(":") for line in rules),
            "host: iptables rules": sum(line.startswith("-A") for line in rules),
            "host: mounts": _lines(Path("/proc/self/mounts")),
            "host: network links": len(os.listdir("/sys/class/net")),
            "host: files in /run/fencepost": _files([Path(RUN)])[0],
        }
    finally:
        client.close()


def nodes() -> dict[str, float]:
    """Measure the nodes together: processes, mounts, rules, queues, files."""
    client = docker.from_env()
    try:
        pids = [int(one.attrs["State"]["Pid"]) for one in labels.containers(client, all=False)]
    finally:
        client.close()
    pairs = [_files([Path(f"/proc/{pid}/root{place}") for place in _PLACES]) for pid in pids]
    return {
        "nodes": len(pids),
        **_programs(pids),
        "nodes: mounts": sum(_lines(Path(f"/proc/{pid}/mounts")) for pid in pids),
        "nodes: iptables rules": sum(_rules(pid) for pid in pids),
        "nodes: network queues": sum(len(_within(pid, "tc", "qdisc")) for pid in pids),
        "nodes: files": sum(count for count, _ in pairs),
        BYTES: sum(size for _, size in pairs) / MB,
    }


_LOOKS, _LOOK_S = 10, 0.1
_PLACES = (RUN, LOGS, "/tmp", "/var/tmp")


def _least(count: Callable[[], int]) -> int:
    """Return the least of some counts, which omits short-lived objects."""
    found = count()
    for _ in range(_LOOKS):
        time.sleep(_LOOK_S)
        found = min(found, count())
    return found


def _programs(pids: list[int]) -> dict[str, float]:
    """Return how many processes of each program there are in these containers, at the least.

    Skip those that a program of the same name has started: a server starts and ends its own helpers
    as it pleases (PostgreSQL's autovacuum, each minute).
    """
    counts = [Counter(_own(pids))]
    for _ in range(_LOOKS):
        time.sleep(_LOOK_S)
        counts.append(Counter(_own(pids)))
    return {f"nodes: {name}": min(one[name] for one in counts) for name in sorted(counts[0])}


def _own(pids: list[int]) -> Iterator[str]:
    parents = _parents()
    for first in pids:
        for pid in inside(first):
            name, parent = _name(pid), _name(parents.get(pid, 0))
            if name and name != parent:
                yield name


def _name(pid: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text().strip()
    return ""


def resident(pid: int) -> int:
    """Return bytes of memory that a process has; 0 if it is gone."""
    with suppress(OSError):
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")
    return 0


def descendants(pid: int) -> set[int]:
    """Return the descendants of a process, except the command that asks."""
    parents = _parents()
    found: set[int] = set()
    new = {pid}
    while new:
        new = {child for child, parent in parents.items() if parent in new} - found
        found |= new
    return found


def inside(pid: int) -> list[int]:
    """Return the processes of the container whose first process this is, except that one."""
    namespace = _namespace(pid)
    return [one for one in _parents() if one != pid and namespace == _namespace(one)]


def _namespace(pid: int) -> str:
    with suppress(OSError):
        return os.readlink(f"/proc/{pid}/ns/pid")
    return f"none of {pid}"


def _parents() -> dict[int, int]:
    found = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            with suppress(OSError):
                stat = Path(f"/proc/{name}/stat").read_text()
                found[int(name)] = int(stat.rpartition(")")[2].split()[1])
    return found


def _rules(pid: int) -> int:
    return sum(line.startswith(("-A", ":FENCEPOST")) for line in _within(pid, "iptables-save"))


def _within(pid: int, *words: str) -> list[str]:
    """Return the output of this machine's command in a container's network."""
    return _said("nsenter", "-t", str(pid), "-n", *words)


def _said(*words: str) -> list[str]:
    if shutil.which(words[0]) is None:
        return []
    return subprocess.run(words, capture_output=True, text=True, check=False).stdout.splitlines()


def _lines(path: Path) -> int:
    with suppress(OSError):
        return len(path.read_text().splitlines())
    return 0


def _files(folders: Iterable[Path]) -> tuple[int, int]:
    """Return how many files these folders have, and their bytes."""
    count = size = 0
    for folder in folders:
        for place, _, names in os.walk(folder):
            for name in names:
                with suppress(OSError):
                    size += os.lstat(f"{place}/{name}").st_size
                    count += 1
    return count, size
