"""The disk below a server's data: the node's own, or one that can fill up or lose power.

`lazy` loses unsynced data (lazy.py), `small` can be filled; both can be combined.
"""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import time
from pathlib import Path

from fencepost.node.places import PROGRAM_PATH

# Starting Python for it takes a second or two, more on a busy machine.
_MOUNT_S = 60.0
_FUSE = Path("/dev/fuse")


def lay(data: Path, wanted: str, size_mb: int, log: Path) -> None:
    """Put the folder on such a disk: plain, or lazy and small, separated by a comma.

    Existing files stay. OSError if the node's kernel, or its rights, do not allow it.
    """
    if wanted == "plain":
        _unmount(data)
        data.mkdir(parents=True, exist_ok=True)
        return
    parts = wanted.split(",")
    below = _backing(data) if "lazy" in parts else data
    for folder in (data, below):
        folder.mkdir(parents=True, exist_ok=True)
    if "small" in parts and not os.path.ismount(below):
        _run("mount", "-t", "tmpfs", "-o", f"size={size_mb}m", "tmpfs", str(below))
    if "lazy" in parts and not os.path.ismount(data):
        _serve(below, data, log)


def take_away(data: Path) -> None:
    """Unmount the disk below the folder, and remove the folder with its files."""
    _unmount(data)
    for folder in (data, _backing(data)):
        shutil.rmtree(folder, ignore_errors=True)


def _backing(data: Path) -> Path:
    return data.with_name(data.name + ".disk")


def _unmount(data: Path) -> None:
    for folder in (data, _backing(data)):
        if os.path.ismount(folder):
            _run("umount", "-l", str(folder))


def _serve(backing: Path, data: Path, log: Path) -> None:
    if not _FUSE.exists():
        os.mknod(_FUSE, stat.S_IFCHR | 0o600, os.makedev(10, 229))
    with log.open("ab") as output:
        daemon = subprocess.Popen(
            [PROGRAM_PATH, "lazy", "serve", str(backing), str(data)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    end = time.monotonic() + _MOUNT_S
    while not os.path.ismount(data):
        if time.monotonic() > end or daemon.poll() is not None:
            raise OSError(f"the lazy disk is not mounted: see {log}")
        time.sleep(0.05)


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise OSError(f"{' '.join(command)}: {done.stderr.strip()}")
